import type { Namespace } from "../../namespace.ts";
import { type Listener, listen } from "../listener.ts";
import { PROJECT, ZONE } from "./compute-api.ts";

export interface GceInstance {
  readonly name: string;
  readonly address: string;
  readonly network: string;
  /** Number of the network's project, where it is another one. */
  readonly networkProject?: string;
  /** Access token of the service account, asked at each request. */
  readonly token: () => string;
}

const ADDRESS = "169.254.169.254";
const FLAVOR = { "metadata-flavor": "Google" };

/** The metadata server of one Compute Engine instance. */
export class GceMetadata implements AsyncDisposable {
  /** Whether nothing is answered properly. */
  broken = false;
  readonly #instance: GceInstance;
  readonly #listener: Listener;

  private constructor(instance: GceInstance, namespace?: Namespace) {
    this.#instance = instance;
    const where = namespace ? { address: ADDRESS, port: 80 } : { address: "127.0.0.1" };
    this.#listener = listen(namespace, where, (request) => this.#answer(request));
  }

  /** Gives the namespace the address of the server, and serves it there. */
  static async start(namespace: Namespace, instance: GceInstance): Promise<GceMetadata> {
    await namespace.ip(`address replace ${ADDRESS}/32 dev lo`);
    return new GceMetadata(instance, namespace);
  }

  /** Serves it on a loopback port of this process. */
  static local(instance: GceInstance): GceMetadata {
    return new GceMetadata(instance);
  }

  /** For `GCE_METADATA_HOST`. */
  get host(): string {
    return `127.0.0.1:${this.#listener.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener[Symbol.asyncDispose]();
  }

  #answer(request: Request): Response {
    if (this.broken) return new Response("", { status: 503 });
    if (request.headers.get("metadata-flavor") !== "Google")
      return new Response("", { status: 403, headers: FLAVOR });
    const path = new URL(request.url).pathname.replace("/computeMetadata/v1", "");
    const { name, address, network, networkProject = "123456", token } = this.#instance;
    const texts: Readonly<Record<string, string>> = {
      "/project/project-id": PROJECT,
      "/instance": "",
      "/instance/name": name,
      "/instance/zone": `projects/123456/zones/${ZONE}`,
      "/instance/network-interfaces/": JSON.stringify([
        { ip: "198.51.100.1", network: "projects/123456/networks/other" },
        { ip: address, network: `projects/${networkProject}/networks/${network}` },
      ]),
      "/instance/service-accounts/default/token": JSON.stringify({
        access_token: token(),
        expires_in: 3599,
        token_type: "Bearer",
      }),
    };
    const text = texts[path];
    return new Response(text ?? "", { status: text === undefined ? 404 : 200, headers: FLAVOR });
  }
}
