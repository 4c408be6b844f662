import { readMetadata } from "flannel/sdk";

/** Where an instance is. */
export interface Identity {
  readonly region: string;
  readonly instance: string;
  readonly vpc: string;
  readonly subnet: string;
}

const BASE = "http://metadata.tencentyun.com/latest/meta-data";

const FIX =
  "flanneld has to run on a CVM instance whose resolver knows metadata.tencentyun.com (183.60.83.19, 183.60.82.98).";

/** Asks the metadata service where this instance is. Rejects with CloudError `metadata`. */
export async function identify(signal: AbortSignal): Promise<Identity> {
  const ask = (path: string) => readMetadata({ url: `${BASE}/${path}`, fix: FIX, signal });
  const mac = await ask("mac");
  return {
    region: await ask("placement/region"),
    instance: await ask("instance-id"),
    vpc: await ask(`network/interfaces/macs/${mac}/vpc-id`),
    subnet: await ask(`network/interfaces/macs/${mac}/subnet-id`),
  };
}
