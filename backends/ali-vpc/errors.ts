import { CloudError, type CloudErrorKind } from "flannel/sdk";

/** The part of what the official library throws that is looked at. */
interface ServiceError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly statusCode?: unknown;
  readonly data?: { readonly Message?: unknown };
}

/** Codes of the VPC API ("Error codes" of its documentation) by what they mean here. */
const KINDS: readonly (readonly [CloudErrorKind, RegExp])[] = [
  ["denied", /^(Forbidden(\.RAM|\.SubUser|NoPermission)?|NoPermission\w*|UnauthorizedOperation)$/],
  [
    "credentials",
    /^(InvalidAccessKeyId\..+|InvalidAccessKeySecret|InvalidSecurityToken\..+|SignatureDoesNotMatch|IncompleteSignature|MissingSecurityToken|InvalidCredentials)$/,
  ],
  ["throttled", /^Throttling(\..+)?$/],
  ["full", /^(QuotaExceeded(\..+)?|.*QuotaExceeded|InstanceQuotaExceeded.*|RouteEntryQuotaExceed.*)$/],
  ["clock", /^(InvalidTimeStamp\..+|IllegalTimestamp|SignatureNonceUsed)$/],
  [
    "missing",
    /^(Invalid(VpcId|RouteTableId|RegionId|InstanceId|NextHopId)\.(NotFound|Malformed)|InvalidParameter\.RouteTable.*)$/,
  ],
  [
    "unreachable",
    /^(ServiceUnavailable|InternalError|InternalServerError|UnknownError|RequestTimeout.*|ECONN\w+|ENOTFOUND|EHOSTUNREACH|ETIMEDOUT)$/,
  ],
];

/** Codes of a table that works on an earlier change. */
const BUSY =
  /^(TaskConflict|OperationConflict|IncorrectRouteEntryStatus|IncorrectVpcStatus|IncorrectStatus.*|LastTokenProcessing)$/;

const CONSOLE = "VPC console → Route Tables";

function fixOf(kind: CloudErrorKind, call: string): string {
  switch (kind) {
    case "denied":
      return `Give the RAM role or user the permission ${call} (RAM console → Policies); the whole policy is in docs/backends.md.`;
    case "credentials":
      return "Attach a RAM role to the instance (ECS console → Instance → Attach/Detach RAM Role), or correct AccessKeyID and AccessKeySecret of the Backend.";
    case "throttled":
      return "It is tried again with growing pauses; a larger CheckInterval in the Backend asks less often.";
    case "full":
      return `Remove entries (${CONSOLE}), or have the quota "custom route entries" raised (Quota Center); it is tried again when the table has changed, else within the hour.`;
    case "clock":
      return "Set this host's clock right and keep it right (chrony with ntp.cloud.aliyuncs.com).";
    case "missing":
      return `Compare region and VPC with ${CONSOLE}.`;
    case "unreachable":
      return "The instance needs a way to the VPC API: internet, NAT, or Endpoint in the Backend with a name inside the VPC. It is tried again by itself.";
    default:
      return `See ${CONSOLE}; it is tried again by itself.`;
  }
}

/** Code of anything that the library throws. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as ServiceError;
  return typeof code === "string" ? code : "";
}

/** Whether the table works on an earlier change, so that waiting helps. */
export function isBusy(error: unknown): boolean {
  return BUSY.test(codeOf(error));
}

/** What a call of the action `vpc:<action>` was rejected with; never keys, or the request with its signature. */
export function toCloudError(error: unknown, action: string): CloudError {
  if (error instanceof CloudError) return error;
  const call = `vpc:${action}`;
  const { message, statusCode, data } = (error ?? {}) as ServiceError;
  const code = codeOf(error);
  const status = typeof statusCode === "number" ? statusCode : undefined;
  const told = typeof data?.Message === "string" ? data.Message : String(message ?? "");
  // The library's own text begins with the code and ends with the id of the request.
  const text = told
    .replace(/^[\w.]+: (code: \d+, )?/, "")
    .replace(/ request id: .*$/s, "")
    .trim();
  const kind = kindOf(code, status, told);
  return new CloudError(
    kind,
    call,
    [code, text].filter(Boolean).join(": ") || "no reason given",
    fixOf(kind, call),
  );
}

function kindOf(code: string, status: number | undefined, text: string): CloudErrorKind {
  const known = KINDS.find(([, pattern]) => pattern.test(code))?.[0];
  if (known) return known;
  if (status === 429) return "throttled";
  if (status !== undefined) return status >= 500 ? "unreachable" : "refused";
  return /credential|role name|access ?key/i.test(text) ? "credentials" : "unreachable";
}
