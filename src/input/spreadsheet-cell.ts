/** A cell as RFC 4180 wants it; also quoted where a careless reader would trim it. */
export function csvCell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Text that a spreadsheet shows instead of running it as a formula. It is changed: never read it back as an id. */
export function neutralised(text: string): string {
  return /^[=+\-@\t\r\0]/.test(text) ? `'${text}` : text;
}
