import type { Kernel } from "../netlink/kernel.ts";
import type { KernelObject, OffloadObject, SettingObject, SysctlObject } from "../netlink/objects.ts";
import { describeError } from "../observe/fault.ts";
import type { Findings } from "../observe/own-findings.ts";

export interface SettingsInput {
  readonly kernel: Pick<Kernel, "txChecksum" | "setTxChecksum">;
  readonly health: Findings;
  /** Writes a sysctl when it differs; why it could not, else undefined. */
  readonly writeSysctl: (object: SysctlObject) => string | undefined;
}

const CODE = "OFFLOAD_REFUSED";

/** Keeps sysctls and offloads at their wanted values: read, and written only when they differ. */
export class Settings {
  readonly #input: SettingsInput;
  #wanted: readonly SettingObject[] = [];

  constructor(input: SettingsInput) {
    this.#input = input;
  }

  /** Replaces what is wanted; {@link apply} makes it so. What is no longer wanted stays as it is. */
  stage(wanted: readonly SettingObject[]): void {
    this.#wanted = wanted;
  }

  /** Brings every setting to its value. A refused offload is a finding; a sysctl may not exist here. Never rejects. */
  async apply(): Promise<void> {
    for (const object of this.#wanted) {
      if (object.kind === "sysctl") this.#input.writeSysctl(object);
      else await this.#applyOffload(object);
    }
  }

  async #applyOffload({ dev, feature, on }: OffloadObject): Promise<void> {
    const { kernel, health } = this.#input;
    try {
      if ((await kernel.txChecksum(dev)) !== on) await kernel.setTxChecksum(dev, on);
      health.clear(CODE, dev);
    } catch (error) {
      health.raise(
        {
          code: CODE,
          severity: "warning",
          title: "a device's checksum offload cannot be set",
          text: `${dev}: ${describeError(error)}`,
          fix: `Try \`ethtool -K ${dev} ${feature} ${on ? "on" : "off"}\` by hand, or set ChecksumOffload to "auto".`,
        },
        dev,
      );
    }
  }
}

/** Whether an object is a setting. */
export function isSetting(object: KernelObject): object is SettingObject {
  return object.kind === "sysctl" || object.kind === "offload";
}
