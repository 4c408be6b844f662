import { askMetadata, readMetadata } from "flannel/sdk";

/** Where an instance is. */
export interface Identity {
  readonly region: string;
  readonly instance: string;
  readonly vpc: string;
  readonly vSwitch: string;
}

const BASE = "http://100.100.100.200/latest";
/** How long a token is good for, seconds: one round of questions. */
const TOKEN_SECONDS = "60";

const FIX = "flanneld has to run on an ECS instance; its firewall must let it reach 100.100.100.200.";

/**
 * Asks the metadata service who this instance is, with a token where there are tokens (security hardened mode). Rejects
 * with CloudError `metadata`.
 */
export async function identify(signal: AbortSignal): Promise<Identity> {
  const { status, body } = await askMetadata({
    url: `${BASE}/api/token`,
    method: "PUT",
    headers: { "X-aliyun-ecs-metadata-token-ttl-seconds": TOKEN_SECONDS },
    fix: FIX,
    signal,
  });
  const headers: Record<string, string> =
    status === 200 && body.trim() !== "" ? { "X-aliyun-ecs-metadata-token": body.trim() } : {};
  const ask = (path: string) => readMetadata({ url: `${BASE}/meta-data/${path}`, headers, fix: FIX, signal });
  return {
    region: await ask("region-id"),
    instance: await ask("instance-id"),
    vpc: await ask("vpc-id"),
    vSwitch: await ask("vswitch-id"),
  };
}
