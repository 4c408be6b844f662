import { type NetworkConfigReading, readNetworkConfig } from "../../../../core/config/network.ts";
import { Fault } from "../../../../core/observe/fault.ts";

/** Where the configs of these tests come from, for messages. */
export const SOURCE = "/coreos.com/network/config";

/** Reads a config, given as text or as what it says. */
export function read(config: string | object): NetworkConfigReading {
  return readNetworkConfig(typeof config === "string" ? config : JSON.stringify(config), SOURCE);
}

/** What a config is refused with; throws when it is not. */
export function refusal(config: string | object): Fault {
  try {
    read(config);
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error("accepted");
}

/** All messages of a refusal, without the source. */
export function messages(fault: Fault): string[] {
  return [fault, ...fault.others].map((each) => each.message.slice(SOURCE.length + 1));
}

/** A family of a config as it is read. */
export function range(network: string, subnetLen: number, subnetMin: string, subnetMax: string) {
  return { network, subnetLen, subnetMin, subnetMax };
}
