import { expect, test } from "bun:test";
import { hasNetAdmin, requireNetAdmin } from "../../../core/host/privilege.ts";

test.each([
  ["root", "Name:\tflanneld\nCapEff:\t000001ffffffffff\n", true],
  [
    "only CAP_NET_ADMIN",
    "CapInh:\t0000000000000000\nCapEff:\t0000000000001000\nCapBnd:\t0000000000000000\n",
    true,
  ],
  ["a container's default set, without it", "CapEff:\t00000000a80425fb\n", false],
  ["none", "CapEff:\t0000000000000000\n", false],
  ["all but it", "CapEff:\tffffffffffffefff\n", false],
  ["permitted but not effective", "CapPrm:\t0000000000001000\nCapEff:\t0000000000000000\n", false],
  ["a kernel that does not tell", "Name:\tflanneld\n", true],
])("%s", (_, status, expected) => {
  expect(hasNetAdmin(status)).toBe(expected);
});

test("root may, so nothing is thrown", () => {
  requireNetAdmin();
});

test("who may not is told what is missing and how to get it", async () => {
  const module = new URL("../../../core/host/privilege.ts", import.meta.url).pathname;
  const script = `import { requireNetAdmin } from ${JSON.stringify(module)};
    try { requireNetAdmin(); } catch ({ code, message, hint }) { console.log(JSON.stringify({ code, message, hint })); }`;
  const drop = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
  const child = Bun.spawn([...drop, process.execPath, "-e", script], { stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect(await child.exited, err).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    code: "PRIVILEGE_MISSING",
    message: expect.stringContaining("CAP_NET_ADMIN"),
    hint: expect.stringContaining("root"),
  });
});
