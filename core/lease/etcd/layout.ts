/**
 * The keys of one network in etcd. The prefix is cleaned as upstream cleans it: doubled and trailing slashes go, a
 * leading one stays (and a missing one stays missing, since to etcd v3 these are different keys).
 */
export class Layout {
  /** Key of the network config. */
  readonly config: string;
  /** What every subnet key begins with, the slash included: a sibling such as `subnets-old/` is not ours. */
  readonly subnets: string;
  /** Everything in `[subnetsFrom, subnetsTo)` lies below `subnets/`. */
  readonly subnetsFrom: Buffer;
  readonly subnetsTo: Buffer;
  readonly #root: string;

  constructor(prefix: string) {
    const base = prefix
      .trim()
      .replace(/\/{2,}/g, "/")
      .replace(/\/$/, "");
    const root = base === "" && !prefix.trim().startsWith("/") ? "" : `${base}/`;
    this.#root = root;
    this.config = `${root}config`;
    this.subnets = `${root}subnets/`;
    this.subnetsFrom = Buffer.from(this.subnets);
    // The byte after "/" is "0".
    this.subnetsTo = Buffer.from(`${root}subnets0`);
  }

  /** Full key of a lease. */
  keyOf(subnetKey: string): Buffer {
    return Buffer.from(this.subnets + subnetKey);
  }

  /** Key of the node that does a task for the whole cluster. */
  leaderOf(task: string): Buffer {
    return Buffer.from(`${this.#root}leaders/${task}`);
  }

  /** What follows `subnets/` in a key of the range. */
  nameOf(key: Buffer): string {
    return key.toString("utf8", this.subnetsFrom.length);
  }
}
