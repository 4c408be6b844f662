import { count } from "../../observe/counts.ts";
import { describeError, Fault } from "../../observe/fault.ts";
import { Histogram } from "../../observe/histogram.ts";
import type { Log } from "../../observe/log.ts";
import { newStoreStats, type StoreStats } from "../stats.ts";
import { type Endpoint, parseEndpoints } from "./endpoint.ts";
import { classify, type Failure, faultOf, isMemberFailure } from "./failure.ts";
import { Login, type LoginOptions } from "./login.ts";
import { Member } from "./member.ts";
import type { Duplex, StreamCalls, StreamName, UnaryCalls, UnaryName } from "./rpc.ts";
import { loadTls, type TlsFiles, type TlsMaterial } from "./tls.ts";

export interface EtcdOptions extends TlsFiles {
  /** `--etcd-endpoints`, split at commas. */
  readonly endpoints: readonly string[];
  /** `--etcd-username` and `--etcd-password`; the password never leaves this module in any text. */
  readonly login?: LoginOptions | undefined;
  readonly log: Log;
}

/** One member alone gets more time than one of several, where the next may answer sooner. */
const TIMEOUT_MS = { alone: 3_000, oneOfSeveral: 2_000 };

/** A connection that does not come about is given up and tried afresh after this long: SYN retries wait up to a minute. */
const CONNECT_PATIENCE_MS = 10_000;

/** A stream and where it runs, so that its failure can be told to {@link EtcdClient.fail}. */
export interface OpenStream<Name extends StreamName> {
  readonly stream: Duplex<StreamCalls[Name]["request"], StreamCalls[Name]["response"]>;
  readonly member: Member;
  readonly token: string | undefined;
}

/**
 * Checks endpoints and TLS files and makes a client; nothing is connected yet.
 * @throws Fault `ETCD_ENDPOINT` or `ETCD_TLS_FILE`.
 */
export function openEtcd(options: EtcdOptions): EtcdClient {
  const endpoints = parseEndpoints(options.endpoints);
  const tls = loadTls(options);
  for (const warning of tls.warnings) options.log.warn(warning);
  const plain = endpoints.filter((endpoint) => !endpoint.secure);
  if (plain.length > 0 && (options.caFile ?? options.certFile) !== undefined) {
    options.log.warn("TLS files are given, but these etcd endpoints are plain http: nothing is encrypted", {
      endpoints: plain.map((endpoint) => endpoint.url),
    });
  }
  return new EtcdClient(endpoints, tls, options);
}

/**
 * Calls to an etcd cluster: every try has a deadline, a member that does not answer is passed over for the next, and
 * the one that answered last is asked first. A call is tried once at each member; more patience is the caller's
 * business. Failures are thrown as Faults (`ETCD_UNREACHABLE`, `ETCD_TLS_VERIFY`, `ETCD_AUTH`, `ETCD_PERMISSION` …).
 */
export class EtcdClient {
  readonly stats: StoreStats = newStoreStats();
  readonly urls: readonly string[];
  readonly #log: Log;
  readonly #files: TlsFiles;
  readonly #login: Login;
  readonly #timeoutMs: number;
  #tls: TlsMaterial;
  #members: Member[];
  #preferred: number;
  #answered: Member | undefined;
  #connectingSince = new Map<Member, number>();
  #lastTrouble: number | undefined;
  #closed = false;

  constructor(endpoints: readonly Endpoint[], tls: TlsMaterial, options: EtcdOptions) {
    this.urls = endpoints.map((endpoint) => endpoint.url);
    this.#log = options.log;
    this.#files = options;
    this.#tls = tls;
    this.#members = endpoints.map((endpoint) => new Member(endpoint, tls));
    this.#timeoutMs = endpoints.length > 1 ? TIMEOUT_MS.oneOfSeveral : TIMEOUT_MS.alone;
    // Nodes spread over the members instead of all asking the first of the list.
    this.#preferred = Math.floor(Math.random() * endpoints.length);
    this.#login = new Login(options.login, options.log);
  }

  /** ms since a member last failed us, undefined when none ever did. */
  get quietMs(): number | undefined {
    return this.#lastTrouble === undefined ? undefined : performance.now() - this.#lastTrouble;
  }

  /** One call with one answer. */
  call<Name extends UnaryName>(
    name: Name,
    request: UnaryCalls[Name]["request"],
    signal?: AbortSignal,
  ): Promise<UnaryCalls[Name]["response"]> {
    return this.#atAnyMember(name, signal, (member, token) =>
      member.call(name, request, { token, timeoutMs: this.#timeoutMs }, signal),
    );
  }

  /** Renews an etcd lease; resolves with its new time to live in seconds, 0 when etcd no longer has it. */
  keepAlive(leaseId: string, signal?: AbortSignal): Promise<number> {
    return this.#atAnyMember("leaseKeepAlive", signal, async (member, token) => {
      const stream = await member.stream("leaseKeepAlive", { token, timeoutMs: this.#timeoutMs });
      return await new Promise<number>((resolve, reject) => {
        stream.on("data", (response) => {
          resolve(Number(response.TTL));
          stream.end();
        });
        stream.on("error", reject);
        stream.on("end", () =>
          reject(Object.assign(new Error("the stream ended without answer"), { code: 14 })),
        );
        stream.write({ ID: leaseId });
      });
    });
  }

  /**
   * Opens a watch stream at the preferred member. Throws a Fault when it (or the login before it) is refused; what
   * befalls the stream afterwards belongs to {@link fail}.
   */
  async openWatch(): Promise<OpenStream<"watch">> {
    this.#refuseIfClosed();
    const member = this.#member(0);
    try {
      const token = await this.#tokenOf(member);
      count(this.stats.requests, "watch");
      const stream = await member.stream("watch", { token, requireLeader: true });
      return { stream, member, token };
    } catch (error) {
      if (error instanceof Fault) throw error;
      throw this.fail({ member, token: undefined }, this.#explain(error, undefined));
    }
  }

  /** Takes note of a watch that failed: drops a bad token, passes over to the next member; returns the fault. */
  fail({ member, token }: Pick<OpenStream<"watch">, "member" | "token">, failure: Failure): Fault {
    count(this.stats.failures, failure.kind);
    if (failure.kind === "token") this.#login.drop(token);
    if (isMemberFailure(failure)) this.#passOver(member, failure);
    return faultOf([{ url: member.endpoint.url, failure }]);
  }

  /** Ends all calls and connections; idempotent. Calls under way fail with `ETCD_CLOSED`. */
  close(): void {
    this.#closed = true;
    for (const member of this.#members) member.close();
  }

  async #atAnyMember<T>(
    name: string,
    signal: AbortSignal | undefined,
    invoke: (member: Member, token: string | undefined) => Promise<T>,
  ): Promise<T> {
    const failures: { url: string; failure: Failure }[] = [];
    const order = this.#members.map((_, n) => this.#member(n));
    for (const member of order) {
      this.#refuseIfClosed();
      try {
        const asked = performance.now();
        const result = await this.#atMember(name, member, invoke);
        this.#noteAnswer(member, name, asked);
        return result;
      } catch (error) {
        if (error instanceof Fault) throw error;
        const failure = this.#explain(error, signal);
        count(this.stats.failures, failure.kind);
        failures.push({ url: member.endpoint.url, failure });
        if (!isMemberFailure(failure)) throw faultOf([{ url: member.endpoint.url, failure }]);
        this.#passOver(member, failure);
      }
    }
    throw faultOf(failures);
  }

  async #atMember<T>(
    name: string,
    member: Member,
    invoke: (member: Member, token: string | undefined) => Promise<T>,
  ): Promise<T> {
    const token = await this.#tokenOf(member);
    count(this.stats.requests, name);
    try {
      return await invoke(member, token);
    } catch (error) {
      if (classify(error).kind !== "token" || !this.#login.configured) throw error;
      // The token ran out, or the member was restarted and forgot it: once more with a new one.
      this.#login.drop(token);
      const fresh = await this.#tokenOf(member);
      count(this.stats.requests, name);
      return await invoke(member, fresh);
    }
  }

  /** A call that ended without us having asked for it fell with its connection. */
  #explain(error: unknown, signal: AbortSignal | undefined): Failure {
    const failure = classify(error);
    if (failure.kind !== "cancelled" || signal?.aborted || this.#closed) return failure;
    return { kind: "unreachable", reason: "the connection was lost" };
  }

  #tokenOf(member: Member): Promise<string | undefined> {
    return this.#login.token((request) => {
      count(this.stats.requests, "authenticate");
      // Without the signal of one caller: others share the answer.
      return member.call("authenticate", request, { timeoutMs: this.#timeoutMs });
    });
  }

  /** The n-th member to try. */
  #member(n: number): Member {
    const member = this.#members[(this.#preferred + n) % this.#members.length];
    if (!member) throw new Fault("ETCD_ENDPOINT", "no etcd member is configured");
    return member;
  }

  #noteAnswer(member: Member, name: string, asked: number): void {
    this.stats.latency[name] ??= new Histogram();
    this.stats.latency[name].observe((performance.now() - asked) / 1000);
    this.#connectingSince.delete(member);
    this.#preferred = Math.max(0, this.#members.indexOf(member));
    if (this.#answered === member) return;
    if (this.#answered) this.#log.info("etcd is now asked elsewhere", { endpoint: member.endpoint.url });
    this.#answered = member;
  }

  #passOver(member: Member, failure: Failure): void {
    this.#lastTrouble = performance.now();
    const index = this.#members.indexOf(member);
    if (index < 0) return;
    if (index === this.#preferred) this.#preferred = (index + 1) % this.#members.length;
    if (this.#closed) return;
    if (failure.kind === "timeout" && this.#isStuck(member)) this.#replace(index, this.#tls);
    if (failure.kind === "tls") this.#reloadTls();
  }

  /**
   * A connection that stands but does not answer is given up at once (keepalive would take 9 s, and takes for ever
   * when no call is open); one that does not come about, after some patience.
   */
  #isStuck(member: Member): boolean {
    if (member.connected) return !member.streaming;
    const since = this.#connectingSince.get(member) ?? performance.now();
    this.#connectingSince.set(member, since);
    return performance.now() - since > CONNECT_PATIENCE_MS;
  }

  #replace(index: number, tls: TlsMaterial): void {
    const old = this.#members[index];
    if (!old) return;
    this.#connectingSince.delete(old);
    this.#members[index] = new Member(old.endpoint, tls);
    old.close();
  }

  /** Drops all connections; the next call makes new ones. */
  reconnect(): void {
    if (this.#closed) return;
    for (const member of this.#members.keys()) this.#replace(member, this.#tls);
  }

  /** Certificates are often renewed in place: a refused handshake reads the files again before the next try. */
  #reloadTls(): void {
    let fresh: TlsMaterial;
    try {
      fresh = loadTls(this.#files);
    } catch (error) {
      this.#log.debug("TLS files cannot be read again", { error: describeError(error) });
      return;
    }
    if (Bun.deepEquals(fresh, this.#tls)) return;
    this.#tls = fresh;
    this.#log.info("the TLS files for etcd have changed and are used from now on");
    for (const warning of fresh.warnings) this.#log.warn(warning);
    for (const member of this.#members.keys()) this.#replace(member, fresh);
  }

  #refuseIfClosed(): void {
    if (this.#closed) throw new Fault("ETCD_CLOSED", "the connection to etcd is closed");
  }
}
