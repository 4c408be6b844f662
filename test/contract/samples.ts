import type { LeaseData } from "flannel/sdk";

/** Routes by `ip`; a route that is there already is left alone, for the kernel tells everybody of an IPv6 one put again. */
const ROUTES_BY_COMMANDS = {
  SubnetAddCommand: [
    "add() { ip $1 route show $2 via $3 dev eth0 | grep -q . || ip $1 route replace $2 via $3 dev eth0; }",
    "if [ $SUBNET != 0.0.0.0/0 ]; then add -4 $SUBNET $PUBLIC_IP || exit; fi",
    "if [ $IPV6SUBNET != ::/0 ]; then add -6 $IPV6SUBNET $PUBLIC_IPV6; fi",
  ].join("\n"),
  SubnetRemoveCommand: [
    "if [ $SUBNET != 0.0.0.0/0 ]; then ip -4 route flush exact $SUBNET; fi",
    "if [ $IPV6SUBNET != ::/0 ]; then ip -6 route flush exact $IPV6SUBNET; fi",
  ].join("\n"),
};

/** Options worth trying beside none at all; a plugin that is not listed is tried with its defaults. */
const OPTIONS: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
  vxlan: [
    {},
    { VNI: 5, Port: 4789, MTU: 1400, GBP: true },
    { DirectRouting: true, MembersOnly: true },
    { Learning: true },
  ],
  ipip: [{}, { DirectRouting: true }, { MembersOnly: true }],
  ipsec: [{ PSK: "0123456789abcdef".repeat(6) }],
  udp: [{}, { Port: 9000, PortV6: 9001, Offload: "off" }],
  "aws-vpc": [
    {},
    { RouteTableID: "rtb-0123456789abcdef0" },
    { RouteTableID: ["rtb-01", "rtb-02"], AllowIMDSv1: true },
    { RouteTableFilter: ["tag:flannel=true"], RouteLimit: 500, RemoveStaleRoutes: false },
  ],
  gce: [{}, { RouteLimit: 500, CheckInterval: 60 }],
  "ali-vpc": [{}, { AccessKeyID: "id", AccessKeySecret: "secret", Endpoint: "vpc.example.com" }],
  "tencent-vpc": [
    {},
    { AccessKeyID: "id", AccessKeySecret: "secret", Endpoint: "http://vpc.example.com:80" },
  ],
  template: [{}, { Metric: 50 }],
  extension: [ROUTES_BY_COMMANDS, { Shell: false, Timeout: 5 }],
  commands: [{}, { Protocol: 150 }],
  wireguard: [{}, { Mode: "auto", ListenPort: 4242, PSK: Buffer.alloc(32, 9).toString("base64"), MTU: 1400 }],
};

/** The sample options of a plugin. */
export function optionSamples(name: string): readonly Readonly<Record<string, unknown>>[] {
  return OPTIONS[name] ?? [{}];
}

/** What node n published, given what another node of the same backend did: where the two cannot be the same. */
export function asPublishedBy(name: string, n: number, published: LeaseData): LeaseData {
  if (name !== "wireguard") return published;
  const PublicKey = Buffer.alloc(32, n).toString("base64");
  const { backendType, ipv4, ipv6 } = published;
  return {
    backendType,
    ...(ipv4 === undefined ? {} : { ipv4: { ...(ipv4 as object), PublicKey } }),
    ...(ipv6 === undefined ? {} : { ipv6: { ...(ipv6 as object), PublicKey } }),
  };
}
