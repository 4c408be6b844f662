import { CloudError, type CloudErrorKind } from "flannel/sdk";

/** The part of an SDK error that is looked at. */
interface ServiceError {
  readonly name?: string;
  readonly code?: string;
  readonly Code?: string;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** Codes of EC2 (EC2 API reference, "Error codes") by what they mean here. */
const KINDS: readonly (readonly [CloudErrorKind, RegExp])[] = [
  ["denied", /^(UnauthorizedOperation|AccessDenied\w*|OptInRequired|Blocked)$/],
  [
    "credentials",
    /^(AuthFailure|InvalidClientTokenId|UnrecognizedClientException|ExpiredToken\w*|InvalidToken\w*|TokenRefreshRequired|MissingAuthenticationToken|CredentialsProviderError|PendingVerification)$/,
  ],
  [
    "throttled",
    /^(RequestLimitExceeded|Throttling\w*|ThrottledException|TooManyRequestsException|EC2ThrottledException|RequestThrottled\w*)$/,
  ],
  ["full", /^(RouteLimitExceeded|.*QuotaExceeded\w*)$/],
  ["clock", /^(RequestExpired|RequestTimeTooSkewed|RequestInTheFuture|SignatureDoesNotMatch)$/],
  ["missing", /^(Invalid\w+(\.NotFound|\.Malformed|ID\.\w+)|InvalidVpcID\w*)$/],
  [
    "unreachable",
    /^(InternalError|InternalFailure|Unavailable|ServiceUnavailable|RequestTimeout|TimeoutError|AbortError|ECONNREFUSED|ECONNRESET|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EAI_AGAIN|EPIPE|UND_ERR\w*|ConnectionRefused|ConnectionClosed|FailedToOpenSocket)$/,
  ],
];

const CONSOLE = "EC2/VPC console → Route tables";

/** What to do, by kind; `call` is the IAM action. */
function fixOf(kind: CloudErrorKind, call: string): string {
  switch (kind) {
    case "denied":
      return call === "ec2:ModifyNetworkInterfaceAttribute"
        ? `Give the instance's role ${call}, or turn the source/destination check of the interface off by hand (EC2 console → Network interfaces → Actions → Change source/dest. check).`
        : `Give the instance's role the permission ${call} (IAM console → Roles); the whole policy is in docs/backends.md.`;
    case "credentials":
      return "Attach an IAM role to the instance (EC2 console → Actions → Security → Modify IAM role), or correct the AWS_… variables or shared files of flanneld.";
    case "throttled":
      return "It is tried again with growing pauses; a larger CheckInterval in the Backend asks less often.";
    case "full":
      return `Remove routes (${CONSOLE}), or have the quota "Routes per route table" raised (Service Quotas console → Amazon VPC); it is tried again when the table has changed, else within the hour.`;
    case "clock":
      return "Set this host's clock right and keep it right (chrony with 169.254.169.123); else the secret key is wrong.";
    case "missing":
      return `Compare RouteTableID and the region with ${CONSOLE}.`;
    case "unreachable":
      return "The instance needs a way to the EC2 endpoint of its region: internet, NAT, or a VPC endpoint com.amazonaws.REGION.ec2. It is tried again by itself.";
    default:
      return `See ${CONSOLE}; it is tried again by itself.`;
  }
}

/** Code of anything that the SDK throws. */
export function codeOf(error: unknown): string {
  const { Code, code, name } = (error ?? {}) as ServiceError;
  return Code ?? (name && name !== "Error" ? name : code) ?? "unknown";
}

/** What the SDK threw at a call of the IAM action `ec2:<action>`, without request ids and encoded messages. */
export function toCloudError(error: unknown, action: string): CloudError {
  if (error instanceof CloudError) return error;
  const call = `ec2:${action}`;
  const code = codeOf(error);
  const { message = "", $metadata } = (error ?? {}) as ServiceError;
  const kind = kindOf(code, $metadata?.httpStatusCode);
  // An encoded authorisation failure is hundreds of characters that tell nobody anything.
  const text = message.replace(/\s*Encoded authorization failure message: \S+/, "").trim();
  return new CloudError(kind, call, text && text !== code ? `${code}: ${text}` : code, fixOf(kind, call));
}

function kindOf(code: string, status: number | undefined): CloudErrorKind {
  const known = KINDS.find(([, pattern]) => pattern.test(code))?.[0];
  if (known) return known;
  if (status === 429) return "throttled";
  return status !== undefined && status >= 500 ? "unreachable" : "refused";
}
