import type {
  IAuthenticateResponse,
  ILeaseGrantRequest,
  ILeaseGrantResponse,
  ILeaseKeepAliveRequest,
  ILeaseKeepAliveResponse,
  ILeaseRevokeRequest,
  ILeaseRevokeResponse,
  ILeaseTimeToLiveRequest,
  ILeaseTimeToLiveResponse,
  IRangeRequest,
  IRangeResponse,
  ITxnRequest,
  ITxnResponse,
  IWatchRequest,
  IWatchResponse,
} from "etcd3";

/** The unary calls of the etcd v3 API (etcd api/etcdserverpb/rpc.proto) in use: service, request, response. */
export interface UnaryCalls {
  readonly range: Unary<"KV", IRangeRequest, IRangeResponse>;
  readonly txn: Unary<"KV", ITxnRequest, ITxnResponse>;
  readonly leaseGrant: Unary<"Lease", ILeaseGrantRequest, ILeaseGrantResponse>;
  readonly leaseRevoke: Unary<"Lease", ILeaseRevokeRequest, ILeaseRevokeResponse>;
  readonly leaseTimeToLive: Unary<"Lease", ILeaseTimeToLiveRequest, ILeaseTimeToLiveResponse>;
  readonly authenticate: Unary<
    "Auth",
    { readonly name: string; readonly password: string },
    IAuthenticateResponse
  >;
}

interface Unary<Service extends ServiceName, Request, Response> {
  readonly service: Service;
  readonly request: Request;
  readonly response: Response;
}

export type UnaryName = keyof UnaryCalls;
export type ServiceName = "KV" | "Lease" | "Watch" | "Auth";

/** Service of each unary call. */
export const SERVICE_OF: { readonly [Name in UnaryName]: UnaryCalls[Name]["service"] } = {
  range: "KV",
  txn: "KV",
  leaseGrant: "Lease",
  leaseRevoke: "Lease",
  leaseTimeToLive: "Lease",
  authenticate: "Auth",
};

/** The streaming calls in use. */
export interface StreamCalls {
  readonly watch: { readonly request: IWatchRequest; readonly response: IWatchResponse };
  readonly leaseKeepAlive: {
    readonly request: ILeaseKeepAliveRequest;
    readonly response: ILeaseKeepAliveResponse;
  };
}

export type StreamName = keyof StreamCalls;

/** Service of each streaming call. */
export const STREAM_SERVICE_OF: { readonly [Name in StreamName]: ServiceName } = {
  watch: "Watch",
  leaseKeepAlive: "Lease",
};

/** A stream in both directions, as grpc-js gives it. */
export interface Duplex<Request, Response> {
  write(request: Request): unknown;
  /** Says that no further request comes. */
  end(): unknown;
  /** Ends both directions; an error event with code 1 follows. */
  cancel(): void;
  on(event: "data", listener: (response: Response) => void): unknown;
  on(event: "error", listener: (error: unknown) => void): unknown;
  on(event: "end", listener: () => void): unknown;
}

/** The numbers of `Compare.CompareTarget` and `Compare.CompareResult` in rpc.proto. */
export const COMPARE = { equal: 0, less: 2, version: 0, mod: 2 } as const;
