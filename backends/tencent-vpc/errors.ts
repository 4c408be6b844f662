import { CloudError, type CloudErrorKind } from "flannel/sdk";

/** The part of what the official library throws that is looked at. */
interface ServiceError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly httpCode?: unknown;
}

/** Codes of the API ("Common error codes", and those of the VPC actions) by what they mean here. */
const KINDS: readonly (readonly [CloudErrorKind, RegExp])[] = [
  ["denied", /^(UnauthorizedOperation(\..+)?|AuthFailure\.UnauthorizedOperation|OperationDenied.*)$/],
  ["clock", /^AuthFailure\.SignatureExpire$/],
  ["credentials", /^(AuthFailure(\..+)?|FailedOperation\.GetCredential.*|InvalidCredential)$/],
  ["throttled", /^RequestLimitExceeded(\..+)?$/],
  ["full", /^(LimitExceeded(\..+)?|.*QuotaExceeded)$/],
  ["missing", /^(ResourceNotFound(\..+)?|InvalidParameterValue\.Malformed|ResourceUnavailable)$/],
  [
    "unreachable",
    /^(InternalError(\..+)?|InternalServerError|ServiceUnavailable|ResourceInsufficient\.Busy)$/,
  ],
];

const CONSOLE = "VPC console → Route Tables";

function fixOf(kind: CloudErrorKind, call: string): string {
  switch (kind) {
    case "denied":
      return `Give the CAM role or user the permission ${call} (CAM console → Policies); the whole policy is in docs/backends.md.`;
    case "credentials":
      return "Bind a CAM role to the instance (CVM console → More → Instance settings → Bind/Modify role), or correct AccessKeyID and AccessKeySecret of the Backend.";
    case "throttled":
      return "It is tried again with growing pauses; a larger CheckInterval in the Backend asks less often.";
    case "full":
      return `Remove routes (${CONSOLE}), or have the quota "routes per route table" raised by a ticket; it is tried again when the table has changed, else within the hour.`;
    case "clock":
      return "Set this host's clock right and keep it right (chrony with time1.tencentyun.com).";
    case "missing":
      return `Compare region and VPC with ${CONSOLE}.`;
    case "unreachable":
      return "The instance needs a way to the VPC API: internet, NAT, or Endpoint in the Backend (vpc.internal.tencentcloudapi.com). It is tried again by itself.";
    default:
      return `See ${CONSOLE}; it is tried again by itself.`;
  }
}

/** Code of anything that the library throws. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as ServiceError;
  return typeof code === "string" ? code : "";
}

/** What a call of the action `vpc:<action>` was rejected with; never keys, or the request with its signature. */
export function toCloudError(error: unknown, action: string): CloudError {
  if (error instanceof CloudError) return error;
  const call = `vpc:${action}`;
  const { message, httpCode } = (error ?? {}) as ServiceError;
  const code = codeOf(error);
  const status = typeof httpCode === "number" ? httpCode : undefined;
  const text = String(message ?? "").trim();
  const kind = kindOf(code, status, text);
  const shown = [code || (status === undefined ? "" : String(status)), text].filter(Boolean).join(": ");
  return new CloudError(kind, call, shown || "no reason given", fixOf(kind, call));
}

function kindOf(code: string, status: number | undefined, text: string): CloudErrorKind {
  const known = KINDS.find(([, pattern]) => pattern.test(code))?.[0];
  if (known) return known;
  if (code !== "") return "refused";
  if (status === 429) return "throttled";
  if (status !== undefined) return status >= 500 ? "unreachable" : "refused";
  return /credential|role|secret/i.test(text) ? "credentials" : "unreachable";
}
