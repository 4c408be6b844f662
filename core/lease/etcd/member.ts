import type { Endpoint } from "./endpoint.ts";
import type { UnaryCalls, UnaryName } from "./rpc.ts";
import { type Duplex, SERVICE_OF, type ServiceName, type StreamCalls, type StreamName } from "./rpc.ts";
import type { TlsMaterial } from "./tls.ts";

/** What goes with a call besides its payload. */
export interface CallContext {
  /** Authentication token, none when etcd runs without authentication. */
  readonly token?: string | undefined;
  /** The call is refused by a member that has lost its leader, instead of serving stale data. */
  readonly requireLeader?: boolean;
  /** ms until the call fails with DEADLINE_EXCEEDED; none for long-lived streams. */
  readonly timeoutMs?: number;
}

/** Parts of grpc-js as they are used here; etcd3 does not type its raw clients. */
interface Metadata {
  set(key: string, value: string): void;
  clone(): Metadata;
}
interface ServiceClient {
  close(): void;
  getChannel(): { getConnectivityState(connect: boolean): number };
}
type UnaryMethod = (
  request: unknown,
  metadata: Metadata,
  options: object,
  callback: (error: unknown, response: unknown) => void,
) => { cancel(): void };
type StreamMethod = (metadata: Metadata, options: object) => Duplex<unknown, unknown>;
type OpenService = (name: ServiceName) => Promise<{ client: ServiceClient; metadata: Metadata }>;

/** `grpc.connectivityState.READY` of grpc-js. */
const READY = 2;

/**
 * Channel options. Keepalive finds a dead peer within 9 s (a ping every 6 s; etcd's floor is 5 s, its
 * `--grpc-keepalive-min-time`); pings go out only while calls are open, since etcd takes others for abuse. Every
 * member has its own connection, shared by all its services.
 */
const CHANNEL_OPTIONS = {
  "grpc.initial_reconnect_backoff_ms": 200,
  "grpc.min_reconnect_backoff_ms": 200,
  "grpc.max_reconnect_backoff_ms": 1000,
  "grpc.keepalive_time_ms": 6000,
  "grpc.keepalive_timeout_ms": 3000,
  // A list of leases may exceed the default of 4 MiB.
  "grpc.max_receive_message_length": -1,
  // etcd is never behind a web proxy, whatever http_proxy says.
  "grpc.enable_http_proxy": 0,
  "grpc.use_local_subchannel_pool": 1,
};

/**
 * The connection to one etcd member. etcd3 makes the gRPC clients and its protocol; retries, choice of the member,
 * authentication and watching are ours, because etcd3's own lose events and trip circuit breakers.
 */
export class Member {
  readonly endpoint: Endpoint;
  readonly #tls: TlsMaterial | undefined;
  readonly #services = new Map<ServiceName, { client: ServiceClient; metadata: Metadata }>();
  readonly #calls = new Set<{ cancel(): void }>();
  readonly #streams = new Set<unknown>();
  #open: Promise<OpenService> | undefined;
  #closed = false;

  constructor(endpoint: Endpoint, tls: TlsMaterial | undefined) {
    this.endpoint = endpoint;
    this.#tls = tls;
  }

  /** Whether a connection stands right now. */
  get connected(): boolean {
    return this.#services.get("KV")?.client.getChannel().getConnectivityState(false) === READY;
  }

  /** Whether a watch is open: keepalive guards the connection as long as that is so. */
  get streaming(): boolean {
    return this.#streams.size > 0;
  }

  /** One call with one answer. Rejects with what grpc-js reports (see failure.ts), also on abort. */
  async call<Name extends UnaryName>(
    name: Name,
    request: UnaryCalls[Name]["request"],
    context: CallContext,
    signal?: AbortSignal,
  ): Promise<UnaryCalls[Name]["response"]> {
    const { client, metadata } = await this.#service(SERVICE_OF[name]);
    const method = (client as unknown as Record<string, UnaryMethod>)[name];
    if (!method) throw new Error(`etcd3 has no call ${name}`);
    return new Promise((resolve, reject) => {
      const call = method.call(
        client,
        request,
        fill(metadata, context),
        deadline(context),
        (error, response) => {
          this.#calls.delete(call);
          signal?.removeEventListener("abort", cancel);
          if (error) reject(error);
          else resolve(response as UnaryCalls[Name]["response"]);
        },
      );
      const cancel = () => call.cancel();
      this.#calls.add(call);
      if (signal?.aborted) call.cancel();
      else signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  /** A stream. Its owner must listen to `error` and must end or cancel it. */
  async stream<Name extends StreamName>(
    name: Name,
    context: CallContext,
  ): Promise<Duplex<StreamCalls[Name]["request"], StreamCalls[Name]["response"]>> {
    const { client, metadata } = await this.#service(name === "watch" ? "Watch" : "Lease");
    const method = (client as unknown as Record<string, StreamMethod>)[name];
    if (!method) throw new Error(`etcd3 has no call ${name}`);
    const stream = method.call(client, fill(metadata, context), deadline(context));
    this.#calls.add(stream);
    if (name === "watch") this.#streams.add(stream);
    const forget = () => {
      this.#calls.delete(stream);
      this.#streams.delete(stream);
    };
    stream.on("error", forget);
    stream.on("end", forget);
    return stream as Duplex<StreamCalls[Name]["request"], StreamCalls[Name]["response"]>;
  }

  /** Ends every call and the connection. */
  close(): void {
    this.#closed = true;
    for (const call of this.#calls) call.cancel();
    this.#calls.clear();
    // All services share the channel of the first.
    this.#services.get("KV")?.client.close();
    this.#services.clear();
  }

  async #service(name: ServiceName): Promise<{ client: ServiceClient; metadata: Metadata }> {
    const known = this.#services.get(name);
    if (known) return known;
    this.#open ??= this.#connect();
    const open = await this.#open;
    const opened = this.#services.get(name) ?? (await open(name));
    if (this.#closed) {
      opened.client.close();
      throw Object.assign(new Error("the connection was closed"), { code: 1 });
    }
    this.#services.set(name, opened);
    return opened;
  }

  /** Imports etcd3 (expensive, hence late) and opens the channel. */
  async #connect(): Promise<OpenService> {
    const [{ Etcd3 }, { noop }] = await Promise.all([import("etcd3"), import("cockatiel")]);
    class Channel extends Etcd3 {
      service(name: ServiceName): Promise<{ client: ServiceClient; metadata: Metadata }> {
        return this.pool.withConnection(name, ({ client, metadata }) => ({
          client: client as ServiceClient,
          metadata: metadata as Metadata,
        }));
      }
    }
    const grpcOptions: Record<string, unknown> = { ...CHANNEL_OPTIONS };
    const etcd = new Channel({
      hosts: this.endpoint.url,
      grpcOptions,
      faultHandling: { host: () => noop, global: noop },
      ...this.#credentials(),
    });
    const first = await etcd.service("KV");
    grpcOptions.channelOverride = first.client.getChannel();
    this.#services.set("KV", first);
    return (name) => etcd.service(name);
  }

  /** Credentials in etcd3's form; http stays plaintext whatever files are given. */
  #credentials(): object {
    if (!this.endpoint.secure || !this.#tls) return {};
    const { ca, cert, key } = this.#tls;
    return {
      credentials: {
        rootCertificate: ca ?? null,
        ...(cert && key ? { certChain: cert, privateKey: key } : {}),
      },
    };
  }
}

function fill(template: Metadata, { token, requireLeader }: CallContext): Metadata {
  const metadata = template.clone();
  if (token !== undefined) metadata.set("token", token);
  // etcd api/v3rpc/rpctypes/metadatafields.go
  if (requireLeader) metadata.set("hasleader", "true");
  return metadata;
}

function deadline({ timeoutMs }: CallContext): object {
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
}
