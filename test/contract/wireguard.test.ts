/** The contract of active backends for wireguard, on a kernel that has WireGuard. */
import { expect, test } from "bun:test";
import { runInVm } from "../lab/vm/vm.ts";

const SECONDS = 600;

test(
  "wireguard keeps the contract of active backends",
  async () => {
    const command = [process.execPath, "test", "--timeout", "120000"];
    const { output, exitCode } = await runInVm(
      [...command, "./test/contract/active.test.ts", "-t", "wireguard"],
      {
        timeout: SECONDS,
      },
    );
    // Six tests in each of IPv4, IPv6 and dual stack.
    expect({ exitCode, output }).toMatchObject({ exitCode: 0, output: expect.stringMatching(/^ 18 pass$/m) });
  },
  2 * SECONDS * 1000,
);
