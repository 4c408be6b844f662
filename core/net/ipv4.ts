const DOT = 46;
const ZERO = 48;

/**
 * The address of dotted text as an unsigned 32-bit number, undefined when it is not one. As strict as Go's
 * `net.ParseIP`: exactly four decimal octets of 0..255, no leading zeros (they were octal once), no spaces.
 */
export function parseIPv4(text: string): number | undefined {
  return parseIPv4At(text, 0, text.length);
}

/** {@link parseIPv4} of `text[from, to)`, without cutting the string. */
export function parseIPv4At(text: string, from: number, to: number): number | undefined {
  // "0.0.0.0" to "255.255.255.255"
  if (to - from < 7 || to - from > 15) return undefined;
  let address = 0;
  let octet = 0;
  let digits = 0;
  let dots = 0;
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (digits === 0 || dots === 3) return undefined;
      address = address * 256 + octet;
      dots++;
      octet = 0;
      digits = 0;
      continue;
    }
    const digit = code - ZERO;
    if (!(digit >= 0 && digit <= 9)) return undefined;
    if (digits > 0 && octet === 0) return undefined;
    octet = octet * 10 + digit;
    digits++;
    if (octet > 255) return undefined;
  }
  if (dots !== 3 || digits === 0) return undefined;
  return address * 256 + octet;
}

/** Dotted text of an unsigned 32-bit number. */
export function formatIPv4(address: number): string {
  return `${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`;
}
