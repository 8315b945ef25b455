type Event = { atMs: number; order: number; happen: (nowMs: number) => void };

/** What happens next in virtual time; first come, first served at the same time. A binary heap. */
export class EventQueue {
  private readonly heap: Event[] = [];
  private order = 0;

  at(atMs: number, happen: (nowMs: number) => void): void {
    this.order += 1;
    this.heap.push({ atMs, order: this.order, happen });
    this.rise(this.heap.length - 1);
  }

  runUntil(endMs: number): void {
    for (let next = this.take(); next && next.atMs < endMs; next = this.take()) next.happen(next.atMs);
  }

  private take(): Event | undefined {
    const first = this.heap[0];
    const last = this.heap.pop();
    if (last && this.heap.length > 0) {
      this.heap[0] = last;
      this.sink(0);
    }
    return first;
  }

  private rise(index: number): void {
    for (let child = index; child > 0; ) {
      const parent = (child - 1) >> 1;
      if (!this.swapIfBefore(child, parent)) return;
      child = parent;
    }
  }

  private sink(index: number): void {
    for (let parent = index; 2 * parent + 1 < this.heap.length; ) {
      const left = 2 * parent + 1;
      const right = left + 1;
      const child = right < this.heap.length && isBefore(this.heap[right]!, this.heap[left]!) ? right : left;
      if (!this.swapIfBefore(child, parent)) return;
      parent = child;
    }
  }

  private swapIfBefore(child: number, parent: number): boolean {
    const [a, b] = [this.heap[child]!, this.heap[parent]!];
    if (!isBefore(a, b)) return false;
    this.heap[child] = b;
    this.heap[parent] = a;
    return true;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
