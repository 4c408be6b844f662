import { CloudError, readMetadata } from "flannel/sdk";

/** Where an instance is, as its metadata server says. */
export interface Identity {
  /** Id of the instance's project: `my-project`. */
  readonly project: string;
  /** Project of the network and its routes: the same, or id or number of the host project of a Shared VPC. */
  readonly networkProject: string;
  /** `europe-west1-b` */
  readonly zone: string;
  readonly instance: string;
  /** Name of the VPC network of the interface that has the node's address. */
  readonly network: string;
}

interface Interface {
  readonly ip?: unknown;
  readonly network?: unknown;
}

const FIX =
  "flanneld has to run on a Compute Engine instance; its firewall must let it reach 169.254.169.254.";

/**
 * Asks the metadata server where this instance is. `GCE_METADATA_HOST` moves it, as for Google's libraries. Rejects with
 * CloudError `metadata`, or `missing` when no interface has the address.
 */
export async function identify(address: string | undefined, signal: AbortSignal): Promise<Identity> {
  const host = process.env.GCE_METADATA_HOST || "169.254.169.254";
  const ask = (path: string) =>
    readMetadata({
      url: `http://${host}/computeMetadata/v1/${path}`,
      headers: { "Metadata-Flavor": "Google" },
      fix: FIX,
      signal,
    });
  const project = await ask("project/project-id");
  const path = await ask("instance/zone");
  const zone = lastPart(path);
  const instance = await ask("instance/name");
  const interfaces = parse(await ask("instance/network-interfaces/?recursive=true"));
  const own = interfaces.find(({ ip }) => ip === address);
  if (typeof own?.network === "string") {
    const home = projectOf(own.network) ?? project;
    // Both paths name projects by number.
    const networkProject = home === projectOf(path) ? project : home;
    return { project, networkProject, zone, instance, network: lastPart(own.network) };
  }
  throw new CloudError(
    "missing",
    "GET instance/network-interfaces",
    `no interface of ${instance} has ${address ?? "an IPv4 address"}`,
    "Choose the interface whose primary internal address the instance has: --iface.",
  );
}

/** `projects/123456/zones/europe-west1-b` → `europe-west1-b` */
export function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function projectOf(path: string): string | undefined {
  return /(?:^|\/)projects\/([^/]+)\//.exec(path)?.[1];
}

function parse(text: string): readonly Interface[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
