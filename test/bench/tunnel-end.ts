import type { Host } from "../lab/host.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";

/** One end of a tunnel. */
export interface TunnelEnd {
  readonly host: Host;
  /** Its address on the tunnel. */
  readonly address: string;
}

/** A host that runs flanneld: its own address on the tunnel is the base of its subnet. */
export async function endOf(host: Host): Promise<TunnelEnd> {
  const { subnet = "" } = await readSubnetFile(host.subnetFile);
  return { host, address: subnet.replace(/\.\d+\/\d+$/, ".0") };
}
