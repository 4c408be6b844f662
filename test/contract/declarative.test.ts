import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { DeclarativeBackend, HostFacts, KernelObject, Peer } from "flannel/sdk";
import { identityOf } from "../../core/dataplane/identity.ts";
import { isSetting } from "../../core/dataplane/settings.ts";
import { containsAddress, containsPrefix, parsePrefix } from "../../core/net/prefix.ts";
import {
  anyBackendData,
  bareFacts,
  deepFreeze,
  expectPlain,
  peerFrom,
  readyFacts,
  subnetsOf,
} from "./inputs.ts";
import { BY_MODE, configureDeclarative, configureInput, type Setting } from "./plugins.ts";

const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

/** This node and a second one with the same config, and that one as a peer of this one. */
async function twoNodes(setting: Setting) {
  const backend = await configureDeclarative(setting, "node-1");
  const other = await configureDeclarative(setting, "node-2");
  const facts = readyFacts(backend);
  return { backend, facts, peer: peerFrom(2, other.publish(readyFacts(other)), setting.families) };
}

/** Whether a text lies in the peer's subnet of its family. */
function liesInPeer(peer: Peer, text: string): boolean {
  const half = text.includes(":") ? peer.ipv6 : peer.ipv4;
  const subnet = half && parsePrefix(half.subnet);
  const inner = parsePrefix(text);
  return subnet !== undefined && (inner ? containsPrefix(subnet, inner) : containsAddress(subnet, text));
}

/** Objects of a plan are for this peer's subnets, towards this peer's addresses, on devices the plugin may use. */
function expectOwnBusiness(
  objects: readonly KernelObject[],
  peer: Peer,
  facts: HostFacts,
  backend: DeclarativeBackend,
): void {
  const own = backend.links(facts).map((link) => link.name);
  for (const object of objects) {
    switch (object.kind) {
      case "route":
        expect(liesInPeer(peer, object.dst)).toBe(true);
        expect([...own, facts.external.name]).toContain(object.dev);
        break;
      case "neighbour":
        expect(liesInPeer(peer, object.ip)).toBe(true);
        expect(own).toContain(object.dev);
        expect(object.mac).toMatch(MAC);
        break;
      case "fdb":
        expect([peer.ipv4?.publicIP, peer.ipv6?.publicIP]).toContain(object.dst);
        expect(own).toContain(object.dev);
        expect(object.mac).toMatch(MAC);
        break;
      default:
        throw new Error(`a peer is no reason for a ${object.kind}`);
    }
  }
  const identities = objects.flatMap((object) => (isSetting(object) ? [] : identityOf(object)));
  expect(new Set(identities).size).toBe(identities.length);
}

describe.each((BY_MODE.declarative ?? []).map(({ label, setting }) => [label, setting] as const))(
  "%s",
  (_, setting) => {
    test("says the same each time, in plain data, and changes nothing it is given", async () => {
      const { backend, facts, peer } = await twoNodes(setting);
      const lease = deepFreeze({ subnets: subnetsOf(1, setting.families) });
      const say = () => ({
        links: backend.links(bareFacts()),
        publish: backend.publish(facts),
        mtu: backend.mtu(facts),
        own: backend.own(lease, facts),
        peer: backend.peer(peer, facts),
      });
      const first = say();
      expectPlain(first);
      expect(say()).toStrictEqual(first);
      const again = await twoNodes(setting);
      expect(again.backend.peer(again.peer, again.facts)).toStrictEqual(first.peer);
    });

    test("its arguments may be copies that went through structuredClone", async () => {
      const { backend, facts, peer } = await twoNodes(setting);
      expect(backend.peer(structuredClone(peer), structuredClone(facts))).toStrictEqual(
        backend.peer(peer, facts),
      );
      expect(backend.publish(structuredClone(facts))).toStrictEqual(backend.publish(facts));
    });

    test("wants devices the kernel can make, and the same ones when they are there", async () => {
      const backend = await configureDeclarative(setting);
      const links = backend.links(bareFacts());
      expect(new Set(links.map((link) => link.name)).size).toBe(links.length);
      for (const link of links) {
        expect(link.name).toMatch(/^[^\s/:]{1,15}$/);
        expect(link.mtu).toBeGreaterThan(0);
        if (link.type !== "vxlan") continue;
        expect(link.mac).toMatch(MAC);
        expect(Number.parseInt(link.mac.slice(0, 2), 16) & 3).toBe(2);
      }
      expect(backend.links(readyFacts(backend))).toStrictEqual(links);
    });

    test("publishes a type it serves, and something that its own kind on another node can use", async () => {
      const { backend, facts, peer } = await twoNodes(setting);
      const types = setting.subject.manifest.backends.map(({ type }) => type);
      expect([...types, ""]).toContain(backend.publish(facts).backendType);
      const { objects, problems = [] } = backend.peer(peer, facts);
      expect(problems).toEqual([]);
      if (backend.ignoresPeers) expect(objects).toEqual([]);
      for (const subnet of backend.ignoresPeers ? [] : [peer.ipv4?.subnet, peer.ipv6?.subnet]) {
        if (subnet !== undefined)
          expect(objects.filter((one) => one.kind === "route").map((one) => one.dst)).toContain(subnet);
      }
    });

    test("plans for this peer's subnets only, and no two peers get in each other's way", async () => {
      const { backend, facts, peer } = await twoNodes(setting);
      const third = await configureDeclarative(setting, "node-3");
      const other = peerFrom(3, third.publish(readyFacts(third)), setting.families);
      const plans = [peer, other].map((each) => {
        const { objects } = backend.peer(each, facts);
        expectOwnBusiness(objects, each, facts, backend);
        return objects.flatMap((object) => (isSetting(object) ? [] : identityOf(object)));
      });
      expect(plans[0]?.filter((identity) => plans[1]?.includes(identity))).toEqual([]);
    });

    test("a peer that lacks a family is reached over the other", async () => {
      const { backend, facts, peer } = await twoNodes(setting);
      for (const family of ["ipv4", "ipv6"] as const) {
        const { [family]: half, ...rest } = peer;
        const { objects, problems = [] } = backend.peer(rest, facts);
        expectOwnBusiness(objects, rest, facts, backend);
        expect(problems).toEqual([]);
        const whole = backend.peer(peer, facts).objects;
        if (half) expect(objects.length).toBeLessThanOrEqual(whole.length);
        else expect(objects).toStrictEqual(whole);
      }
      const { ipv4: _, ipv6: __, ...bare } = peer;
      expect(backend.peer(bare, facts).objects).toEqual([]);
    });

    test("a peer of another backend is left alone and named as a problem", async () => {
      const { backend, facts, peer } = await twoNodes(setting);
      for (const backendType of ["somebody-elses", "", "VXLAN"]) {
        if (backend.ignoresPeers || backendType === peer.backendType) continue;
        const { objects, problems = [] } = backend.peer({ ...peer, backendType }, facts);
        expect(objects).toEqual([]);
        expect(problems.join()).toContain(`"${backendType}"`);
      }
    });

    test("garbage in a peer's data is a problem at most, never a throw, and never leads elsewhere", async () => {
      const { backend, facts, peer } = await twoNodes(setting);
      fc.assert(
        fc.property(anyBackendData, anyBackendData, (v4, v6) => {
          const garbled = deepFreeze({
            ...peer,
            ...(peer.ipv4 ? { ipv4: { ...peer.ipv4, data: v4 } } : {}),
            ...(peer.ipv6 ? { ipv6: { ...peer.ipv6, data: v6 } } : {}),
          });
          const plan = backend.peer(garbled, facts);
          expectPlain(plan);
          expectOwnBusiness(plan.objects, garbled, facts, backend);
          for (const problem of plan.problems ?? []) expect(problem.length).toBeWithin(1, 400);
        }),
        { numRuns: 150 },
      );
    });

    test("its MTU is that of the underlay less the documented overhead of the families that are on", async () => {
      const backend = await configureDeclarative(setting);
      const overhead = setting.subject.manifest.backends[0]?.overhead ?? 0;
      const of = (family: "ipv4" | "ipv6") => (typeof overhead === "number" ? overhead : overhead[family]);
      const most = Math.max(setting.families.ipv4 ? of("ipv4") : 0, setting.families.ipv6 ? of("ipv6") : 0);
      for (const underlay of [1500, 9000, 1400, 65_535]) {
        const limit = typeof setting.raw.MTU === "number" ? Math.min(setting.raw.MTU, underlay) : underlay;
        expect(backend.mtu(bareFacts(underlay))).toBe(limit - most);
        expect(backend.mtu(readyFacts(backend, underlay))).toBe(limit - most);
      }
    });

    test("its own objects are on its own devices and inside its own lease", async () => {
      const { backend, facts } = await twoNodes(setting);
      const own = backend.links(facts).map((link) => link.name);
      const subnets = subnetsOf(1, setting.families);
      const networks = [subnets.ipv4, subnets.ipv6].flatMap((text) =>
        text === undefined ? [] : (parsePrefix(text) ?? []),
      );
      for (const object of backend.own({ subnets }, facts)) {
        if (object.kind === "sysctl") {
          expect(own.some((name) => object.path.split("/").includes(name))).toBe(true);
          continue;
        }
        expect(own).toContain(object.dev);
        if (object.kind !== "address") continue;
        const address = parsePrefix(object.address);
        expect(networks.some((network) => address && containsPrefix(network, address))).toBe(true);
      }
      expect(backend.own({ subnets: {} }, facts).filter((object) => object.kind === "address")).toEqual([]);
    });

    test("its check, if it has one, finds nothing wrong with a good host and throws at no other", async () => {
      const input = await configureInput(setting);
      const { check } = setting.subject.plugin;
      const findings = (await check?.({ ...input, facts: bareFacts() })) ?? [];
      expect(findings.filter((finding) => finding.severity === "error")).toEqual([]);
      const bare = deepFreeze({ external: { name: "eth0", index: 2, mtu: 1500 }, links: {}, routes: [] });
      for (const finding of (await check?.({ ...input, facts: bare })) ?? []) {
        expectPlain(finding);
        expect(finding.code).toMatch(/^[A-Z][A-Z0-9_]+$/);
        expect([finding.title, finding.text, finding.fix]).not.toContain("");
      }
    });
  },
);
