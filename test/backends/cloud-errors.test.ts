import { describe, expect, test } from "bun:test";
import type { CloudError } from "flannel/sdk";
import { toRoute as toAliRoute } from "../../backends/ali-vpc/entry.ts";
import { toCloudError as ofAli } from "../../backends/ali-vpc/errors.ts";
import ali from "../../backends/ali-vpc/index.ts";
import { toCloudError as ofAws } from "../../backends/aws-vpc/errors.ts";
import { toCloudError as ofGce } from "../../backends/gce/errors.ts";
import { toCloudError as ofTencent } from "../../backends/tencent-vpc/errors.ts";
import tencent from "../../backends/tencent-vpc/index.ts";
import { toRoute as toTencentRoute } from "../../backends/tencent-vpc/route.ts";

const coded = (code: string, message = "text") => Object.assign(new Error(message), { code });
const named = (name: string, status?: number) =>
  Object.assign(new Error("text"), { name, ...(status ? { $metadata: { httpStatusCode: status } } : {}) });
const answered = (status: number, reason?: string) => ({
  message: `Request failed with status code ${status}`,
  response: {
    status,
    data:
      reason === undefined ? "<html>" : { error: { code: status, message: "text", errors: [{ reason }] } },
  },
});

/** What a cloud says, and what it means. */
const CASES: Readonly<Record<string, readonly (readonly [error: unknown, kind: string])[]>> = {
  aws: [
    [named("UnauthorizedOperation", 403), "denied"],
    [named("AuthFailure", 401), "credentials"],
    [named("ExpiredToken", 400), "credentials"],
    [named("CredentialsProviderError"), "credentials"],
    [named("RequestLimitExceeded", 503), "throttled"],
    [named("RouteLimitExceeded", 400), "full"],
    [named("RequestExpired", 400), "clock"],
    [named("InvalidRouteTableID.NotFound", 400), "missing"],
    [named("InvalidRouteTableId.Malformed", 400), "missing"],
    [named("InternalError", 500), "unreachable"],
    [named("Anything", 502), "unreachable"],
    [named("TimeoutError"), "unreachable"],
    [coded("ECONNREFUSED"), "unreachable"],
    [named("RouteAlreadyExists", 400), "refused"],
  ],
  gce: [
    [answered(403, "forbidden"), "denied"],
    [answered(401, "authError"), "credentials"],
    [answered(403, "rateLimitExceeded"), "throttled"],
    [answered(429), "throttled"],
    [answered(403, "quotaExceeded"), "full"],
    [answered(404, "notFound"), "missing"],
    [answered(503), "unreachable"],
    [answered(409, "alreadyExists"), "refused"],
    [new Error("Could not load the default credentials."), "credentials"],
    [new Error("The operation was aborted due to timeout"), "unreachable"],
    [new Error("invalid_grant: Token must be a short-lived token; check your iat and exp values"), "clock"],
  ],
  ali: [
    [coded("Forbidden.RAM"), "denied"],
    [coded("InvalidAccessKeyId.NotFound"), "credentials"],
    [coded("InvalidSecurityToken.Expired"), "credentials"],
    [coded("Throttling.User"), "throttled"],
    [coded("QuotaExceeded.RouteEntry"), "full"],
    [coded("InvalidTimeStamp.Expired"), "clock"],
    [coded("InvalidVpcId.NotFound"), "missing"],
    [coded("ServiceUnavailable"), "unreachable"],
    [Object.assign(coded("Whatever"), { statusCode: 500 }), "unreachable"],
    [Object.assign(coded("InvalidCIDRBlock.Duplicate"), { statusCode: 400 }), "refused"],
    [new Error("connect ECONNREFUSED"), "unreachable"],
    [new Error("get role name failed: GET http://100.100.100.200/… 404"), "credentials"],
  ],
  tencent: [
    [coded("UnauthorizedOperation"), "denied"],
    [coded("AuthFailure.UnauthorizedOperation"), "denied"],
    [coded("AuthFailure.SecretIdNotFound"), "credentials"],
    [coded("AuthFailure.SignatureExpire"), "clock"],
    [coded("RequestLimitExceeded.UinLimitExceeded"), "throttled"],
    [coded("LimitExceeded"), "full"],
    [coded("ResourceNotFound"), "missing"],
    [coded("InternalError"), "unreachable"],
    [Object.assign(new Error("Bad Gateway"), { httpCode: 502 }), "unreachable"],
    [Object.assign(new Error("Too Many Requests"), { httpCode: 429 }), "throttled"],
    [coded("InvalidParameterValue.Duplicate"), "refused"],
    [new Error("Get cvm role name failed, Please confirm whether the role is bound"), "credentials"],
  ],
};

const OF: Readonly<Record<string, (error: unknown, call: string) => CloudError>> = {
  aws: ofAws,
  gce: ofGce,
  ali: ofAli,
  tencent: ofTencent,
};

describe.each(Object.keys(CASES))("what %s says", (cloud) => {
  test.each(
    (CASES[cloud] ?? []).map(
      ([error, kind]) =>
        [JSON.stringify({ ...(error as object), message: (error as Error).message }), error, kind] as const,
    ),
  )("%s", (_, error, kind) => {
    const told = OF[cloud]!(error, "Call");
    expect(told).toMatchObject({ name: "CloudError", kind });
    expect(told.call).toContain("Call");
    expect(told.message).not.toBe("");
    expect(told.fix).toMatch(/\w+ \w+/);
  });
});

test("only a custom entry to one instance may be a node's (ali)", () => {
  const hop = (NextHopType: string, Enabled = 1) => ({
    NextHops: { NextHop: [{ NextHopId: "x", NextHopType, Enabled }] },
  });
  const entry = { DestinationCidrBlock: "10.244.1.0/24", Type: "Custom", Status: "Available" };
  expect(toAliRoute({ ...entry, ...hop("Instance") })).toMatchObject({
    kind: "node",
    state: "active",
    target: "x",
  });
  expect(toAliRoute({ ...entry, ...hop("Instance"), Status: "Pending" })).toMatchObject({ state: "pending" });
  expect(toAliRoute({ ...entry, ...hop("Instance", 0) })).toMatchObject({ state: "blackhole" });
  expect(toAliRoute({ ...entry, ...hop("VpnGateway") })).toMatchObject({ kind: "foreign" });
  expect(toAliRoute({ ...entry, ...hop("Instance"), Type: "CEN" })).toMatchObject({
    kind: "foreign",
    uncounted: true,
  });
  const several = {
    NextHops: { NextHop: [...hop("Instance").NextHops.NextHop, ...hop("Instance").NextHops.NextHop] },
  };
  expect(toAliRoute({ ...entry, ...several })).toMatchObject({ kind: "foreign" });
});

test("only a user's route to an instance may be a node's (tencent)", () => {
  const route = {
    RouteId: 7,
    DestinationCidrBlock: "10.244.1.0/24",
    GatewayType: "NORMAL_CVM",
    GatewayId: "192.0.2.1",
    RouteType: "USER",
    Enabled: true,
  };
  expect(toTencentRoute(route)).toMatchObject({
    kind: "node",
    state: "active",
    target: "192.0.2.1",
    id: "7",
  });
  expect(toTencentRoute({ ...route, Enabled: false })).toMatchObject({ state: "disabled" });
  expect(toTencentRoute({ ...route, GatewayType: "CVM" })).toMatchObject({ kind: "foreign" });
  expect(toTencentRoute({ ...route, RouteType: "CCN" })).toMatchObject({ kind: "foreign", uncounted: true });
  expect(toTencentRoute({ ...route, RouteDescription: "flannel" })).toMatchObject({ marked: true });
});

test("an API that is switched off is told as that, and not as a permission that is missing (gce)", () => {
  const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "SERVICE_DISABLED" }];
  const newer = { response: { status: 403, data: { error: { code: 403, message: "text", details } } } };
  for (const error of [answered(403, "accessNotConfigured"), newer]) {
    const told = ofGce(error, "compute.routes.list");
    expect(told.kind).toBe("refused");
    expect(told.fix).toContain("gcloud services enable compute.googleapis.com");
  }
});

describe.each(Object.entries({ ali, tencent }))("the Endpoint of %s", (_, plugin) => {
  const accepts = (Endpoint: unknown) => {
    const result = plugin.options["~standard"].validate({ Endpoint });
    return !(result instanceof Promise) && result.issues === undefined;
  };

  test.each([
    "",
    "vpc.example.com",
    "vpc.example.com:8443",
    "https://vpc.example.com/",
    "http://192.0.2.1:80",
  ])("may be %p", (endpoint) => expect(accepts(endpoint)).toBe(true));

  test.each([
    "vpc.example.com/v1",
    "https://vpc.example.com/api/",
    "ftp://vpc.example.com",
    "https://",
    "a b",
  ])("may not be %p", (endpoint) => expect(accepts(endpoint)).toBe(false));
});
