import { EC2Client } from "@aws-sdk/client-ec2";
import type { Host } from "../../../host.ts";
import type { Switch } from "../../../switch.ts";
import type { Cloud } from "../../counterpart.ts";
import { listen } from "../../listener.ts";
import { Imds } from "../metadata.ts";
import type { MotoServer } from "./server.ts";
import { MotoVpc } from "./vpc.ts";

const REGION = "eu-west-1";
/** moto believes everybody. */
const KEYS = { accessKeyId: "ASIATEST1", secretAccessKey: "secret", sessionToken: "token-1" };

/** AWS as moto emulates it: a VPC for the hosts of a switch, EC2 on the switch, a metadata service on every host. */
export class MotoCounterpart implements Cloud {
  readonly backend = { Type: "aws-vpc", CheckInterval: 1, StaleRouteGrace: 2 };
  /** What the nodes called; the operator's own calls are not among them. */
  readonly calls: readonly string[];
  readonly vpc: MotoVpc;
  readonly #url: string;
  readonly #stack: AsyncDisposableStack;

  private constructor(vpc: MotoVpc, url: string, calls: readonly string[], stack: AsyncDisposableStack) {
    this.vpc = vpc;
    this.calls = calls;
    this.#url = url;
    this.#stack = stack;
  }

  /** Lays out a VPC whose subnet is the switch's network. */
  static async create(moto: MotoServer, on: Switch): Promise<MotoCounterpart> {
    await using stack = new AsyncDisposableStack();
    const operator = stack.use(
      listen(undefined, { address: "127.0.0.1" }, (request) => moto.answer(request)),
    );
    const ec2 = new EC2Client({ endpoint: operator.url, region: REGION, credentials: KEYS });
    stack.defer(() => ec2.destroy());
    const vpc = await MotoVpc.layOut(ec2, on.segment.networkV4);
    const calls: string[] = [];
    const nodes = stack.use(
      listen(on.namespace, { address: on.ipv4 }, async (request) => {
        calls.push(new URLSearchParams(await request.clone().text()).get("Action") ?? "");
        return moto.answer(request);
      }),
    );
    return new MotoCounterpart(vpc, nodes.url, calls, stack.move());
  }

  get changes(): readonly string[] {
    return this.calls.filter((call) => !call.startsWith("Describe"));
  }

  permissionsOf(call: string): readonly string[] {
    return [`ec2:${call}`];
  }

  env(): Readonly<Record<string, string>> {
    return { AWS_ENDPOINT_URL_EC2: this.#url };
  }

  async join(host: Host): Promise<string> {
    const { instanceId, interfaceId } = await this.vpc.addInstance(host.ipv4);
    const metadata = { instanceId, region: REGION, keys: () => KEYS };
    this.#stack.use(await Imds.start(host.namespace, metadata));
    return interfaceId;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
