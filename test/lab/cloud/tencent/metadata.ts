import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import type { Host } from "../../host.ts";
import type { CloudKeys } from "../api.ts";
import { type Listener, listen } from "../listener.ts";
import { REGION, SUBNET, VPC } from "./vpc-api.ts";

const ADDRESS = "169.254.0.23";
const NAME = "metadata.tencentyun.com";
const ROLE = "flannel-node";

/** The metadata service of one CVM instance, under its name: `ip netns exec` lays a hosts file of its own over /etc. */
export class TencentMetadata implements AsyncDisposable {
  broken = false;
  readonly #host: Host;
  readonly #keys: () => CloudKeys;
  readonly #listener: Listener;
  readonly #folder: string;

  private constructor(host: Host, keys: () => CloudKeys) {
    this.#host = host;
    this.#keys = keys;
    this.#folder = `/etc/netns/${host.namespace.name}`;
    mkdirSync(this.#folder, { recursive: true });
    writeFileSync(`${this.#folder}/hosts`, `127.0.0.1 localhost\n${ADDRESS} ${NAME}\n`);
    this.#listener = listen(host.namespace, { address: ADDRESS, port: 80 }, (request) =>
      this.#answer(request),
    );
  }

  /** Gives the host the address and the name of the service, and serves it there. */
  static async start(host: Host, keys: () => CloudKeys): Promise<TencentMetadata> {
    await host.namespace.ip(`address replace ${ADDRESS}/32 dev lo`);
    return new TencentMetadata(host, keys);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
    await this.#listener[Symbol.asyncDispose]();
  }

  #answer(request: Request): Response {
    if (this.broken) return new Response("", { status: 503 });
    const { pathname, hostname } = new URL(request.url);
    if (hostname !== NAME) return new Response("", { status: 404 });
    const { id, secret, token } = this.#keys();
    const mac = this.#host.mac;
    const texts: Readonly<Record<string, string>> = {
      mac,
      "instance-id": `ins-${this.#host.number}`,
      "placement/region": REGION,
      [`network/interfaces/macs/${mac}/vpc-id`]: VPC,
      [`network/interfaces/macs/${mac}/subnet-id`]: SUBNET,
      "cam/security-credentials/": ROLE,
      [`cam/security-credentials/${ROLE}`]: JSON.stringify({
        TmpSecretId: id,
        TmpSecretKey: secret,
        Token: token,
        ExpiredTime: Math.round(Date.now() / 1000) + 7_200,
        Expiration: new Date(Date.now() + 7_200_000).toISOString(),
        Code: "Success",
      }),
    };
    const text = texts[pathname.replace("/latest/meta-data/", "")];
    return new Response(text ?? "", { status: text === undefined ? 404 : 200 });
  }
}
