/** The oldest Redis whose commands we and BullMQ rely on. */
export const oldestVersion = '6.2';

/** True for versions below `oldestVersion`, and for text that is no version. */
export function isOldVersion(version: string): boolean {
  const [major, minor] = version.split('.').map(Number);
  return !(Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 2));
}
