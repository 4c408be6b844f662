import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { renderDockerOptions } from "../../../core/cli/docker-opts.ts";
import { readVariables } from "../../../core/host/subnet-file.ts";

const SCRIPT = resolve(import.meta.dir, "../../../dist/mk-docker-opts.sh");
const FILE =
  "FLANNEL_NETWORK=10.1.0.0/16\nFLANNEL_SUBNET=10.1.74.1/24\nFLANNEL_MTU=1472\nFLANNEL_IPMASQ=false\n";
const BOTH = { individual: true, combined: true, key: "DOCKER_OPTS", withoutMasq: false };

test("as documented", () => {
  expect(renderDockerOptions(readVariables(FILE), BOTH, {})).toBe(
    'DOCKER_OPT_BIP="--bip=10.1.74.1/24"\nDOCKER_OPT_IPMASQ="--ip-masq=true"\nDOCKER_OPT_MTU="--mtu=1472"\n' +
      'DOCKER_OPTS=" --bip=10.1.74.1/24 --ip-masq=true --mtu=1472"\n',
  );
});

test("a bad FLANNEL_IPMASQ is refused", () => {
  expect(() => renderDockerOptions(readVariables("FLANNEL_IPMASQ=maybe"), BOTH, {})).toThrow("maybe");
});

test("byte for byte what the script writes, whatever is asked for", () => {
  const folder = mkdtempSync(join(tmpdir(), "flannel-docker-"));
  const [input, output] = [join(folder, "subnet.env"), join(folder, "docker.env")];
  const optional = (line: string) => fc.constantFrom("", line);
  const cases = fc.record({
    lines: fc.tuple(
      optional("FLANNEL_SUBNET=10.1.74.1/24\n"),
      optional("FLANNEL_MTU=1472\n"),
      fc.constantFrom("", "FLANNEL_IPMASQ=true\n", "FLANNEL_IPMASQ=false\n"),
    ),
    i: fc.boolean(),
    c: fc.boolean(),
    m: fc.boolean(),
    key: fc.constantFrom(undefined, "CUSTOM_KEY"),
    environment: fc.constantFrom<Record<string, string>>(
      {},
      { DOCKER_OPTS: "--debug" },
      { CUSTOM_KEY: "--x", DOCKER_OPT_DNS: "--dns=192.0.2.53", DOCKER_OPT_ZZ: "--z" },
    ),
  });
  try {
    fc.assert(
      fc.property(cases, ({ lines, i, c, m, key, environment }) => {
        writeFileSync(input, lines.join(""));
        const flags = [
          ...(i ? ["-i"] : []),
          ...(c ? ["-c"] : []),
          ...(m ? ["-m"] : []),
          ...(key ? ["-k", key] : []),
        ];
        const { exitCode } = Bun.spawnSync(["sh", SCRIPT, "-f", input, "-d", output, ...flags], {
          env: { PATH: process.env.PATH ?? "", ...environment },
        });
        const form = { individual: i || !c, combined: c || !i, key: key ?? "DOCKER_OPTS", withoutMasq: m };
        expect(exitCode).toBe(0);
        expect(renderDockerOptions(readVariables(lines.join("")), form, environment)).toBe(
          readFileSync(output, "utf8"),
        );
      }),
      { numRuns: 25 },
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 30_000);
