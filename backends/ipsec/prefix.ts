/** An IPv4 prefix as numbers. */
interface Prefix {
  readonly first: number;
  readonly length: number;
}

/** Whether CIDR text lies in the network of CIDR text (IPv4); false for anything that is none. */
export function isWithin(cidr: string, network: string): boolean {
  const [inner, outer] = [parse(cidr), parse(network)];
  if (!inner || !outer || inner.length < outer.length) return false;
  const size = 2 ** (32 - outer.length);
  return Math.floor(inner.first / size) === Math.floor(outer.first / size);
}

function parse(cidr: string): Prefix | undefined {
  const [, a, b, c, d, length] = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\/(\d+)$/.exec(cidr) ?? [];
  const bytes = [a, b, c, d].map(Number);
  if (length === undefined || Number(length) > 32 || bytes.some((byte) => byte > 255)) return undefined;
  return { first: bytes.reduce((sum, byte) => sum * 256 + byte, 0), length: Number(length) };
}
