import { CloudError, type CloudErrorKind } from "flannel/sdk";

/** An error in a response of the Compute API, or of an operation. */
export interface ApiError {
  readonly code?: number | string;
  readonly message?: string;
  readonly errors?: readonly {
    readonly reason?: string;
    readonly code?: string;
    readonly message?: string;
  }[];
  /** google.rpc.ErrorInfo and others. */
  readonly details?: readonly { readonly reason?: string }[];
}

/** The part of what google-auth-library throws that is looked at. */
interface RequestError {
  readonly message?: string;
  readonly code?: unknown;
  readonly response?: { readonly status?: number; readonly data?: unknown };
}

const CONSOLE = "Google Cloud console → VPC network → Routes";

function fixOf(kind: CloudErrorKind, call: string): string {
  switch (kind) {
    case "denied":
      return (
        `Give the instance's service account the permission ${call} (IAM & Admin → Roles; the whole role is in ` +
        "docs/backends.md), and the instance the access scope compute-rw or cloud-platform (stop it, then Edit → Access scopes)."
      );
    case "credentials":
      return "Attach a service account to the instance (stop it, then Edit → Service account), or let GOOGLE_APPLICATION_CREDENTIALS name a key file.";
    case "throttled":
      return "It is tried again with growing pauses; a larger CheckInterval in the Backend asks less often.";
    case "full":
      return `Remove routes (${CONSOLE}), or have the quota "Routes" raised (IAM & Admin → Quotas); it is tried again when the routes have changed, else within the hour.`;
    case "missing":
      return `Compare project, zone and network with ${CONSOLE}.`;
    case "clock":
      return "Set this host's clock right and keep it right: chrony with metadata.google.internal.";
    case "unreachable":
      return "The instance needs a way to compute.googleapis.com: an external address, Cloud NAT or Private Google Access. It is tried again by itself.";
    default:
      return `See ${CONSOLE}; it is tried again by itself.`;
  }
}

/** Reasons of a project in which the API is switched off (of the older form of an error, and of the newer one). */
const SWITCHED_OFF = /^(accessNotConfigured|SERVICE_DISABLED)$/;
const SWITCH_ON =
  "Switch the Compute Engine API on: gcloud services enable compute.googleapis.com (APIs & Services → Library). It is " +
  "tried again by itself.";

/** What a request of the permission `compute.<call>` was rejected with; never the token or the request. */
export function toCloudError(error: unknown, call: string): CloudError {
  if (error instanceof CloudError) return error;
  const { message = String(error), response } = (error ?? {}) as RequestError;
  const status = response?.status;
  if (status === undefined) return failure(kindOfLocal(message), call, message);
  const body = response?.data;
  const api = isObject(body) && isObject(body.error) ? (body.error as ApiError) : undefined;
  return ofApi(api ?? {}, status, call);
}

/** What an operation ended with. */
export function ofOperation(
  errors: ApiError["errors"],
  status: number | undefined,
  call: string,
): CloudError {
  return ofApi({ errors: errors ?? [] }, status ?? 400, call);
}

function ofApi({ message, errors = [], details = [] }: ApiError, status: number, call: string): CloudError {
  const [first] = errors;
  const reason = first?.reason ?? first?.code ?? String(status);
  const text = `${reason}: ${message ?? first?.message ?? "no reason given"}`;
  const detail = details.find(({ reason: told }) => told !== undefined)?.reason ?? "";
  if (SWITCHED_OFF.test(reason) || SWITCHED_OFF.test(detail))
    return failure("refused", call, text, SWITCH_ON);
  return failure(kindOfApi(reason, status), call, text);
}

/** Reasons of the Compute API ("Troubleshooting API errors" of its documentation), then the status. */
function kindOfApi(reason: string, status: number): CloudErrorKind {
  if (/^(rateLimitExceeded|userRateLimitExceeded|RATE_LIMIT_EXCEEDED)$/.test(reason)) return "throttled";
  if (/^(quotaExceeded|QUOTA_EXCEEDED|limitExceeded|LIMIT_EXCEEDED)$/.test(reason)) return "full";
  if (/^(authError|UNAUTHENTICATED)$/.test(reason) || status === 401) return "credentials";
  if (status === 403) return "denied";
  if (status === 404) return "missing";
  if (status === 429) return "throttled";
  return status >= 500 ? "unreachable" : "refused";
}

/** Failures before any answer of the API: of the credentials, else of the network. */
function kindOfLocal(message: string): CloudErrorKind {
  if (/invalid_grant.*(iat|exp|time)/i.test(message)) return "clock";
  return /default credentials|credential|invalid_grant|access token|service account|private key/i.test(
    message,
  )
    ? "credentials"
    : "unreachable";
}

function failure(kind: CloudErrorKind, call: string, message: string, fix = fixOf(kind, call)): CloudError {
  return new CloudError(kind, call, message.replaceAll(/\s+/g, " ").trim(), fix);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
