import { CloudApi, type CloudCall, Refusal } from "../api.ts";
import { problems } from "../listener.ts";
import { type ReadCall, readCall, writeAnswer } from "./description.ts";

/** A `Route` of the Compute API. */
export type StateRoute = Readonly<Record<string, unknown>> & {
  readonly name: string;
  readonly network: string;
  readonly destRange: string;
};

interface StateOperation {
  readonly name: string;
  /** Looks that still show it running. */
  left: number;
  readonly error?: { readonly code: string; readonly status: number };
}

export const PROJECT = "test-project";
export const ZONE = "europe-west1-b";
/** Looks at an operation until it is done. */
const SLOWNESS = 2;
/** Routes on a page at most, whatever is asked for. */
const PAGE = 500;

/** Google's Compute API on one project: requests are checked against its discovery document, and their token. */
export class ComputeApi extends CloudApi {
  readonly routes: StateRoute[] = [];
  /** Instances by name, and whether they may forward. */
  readonly instances = new Map<string, boolean>();
  /** The access token that is valid. */
  token = "ya29.s3cr3t-Hunter2-1";
  /** Number of the host project, where the network is a Shared VPC's: routes are there, and instances are not. */
  hostProject: string | undefined;
  /** What the next operations end with. */
  readonly endings: { readonly code: string; readonly status: number }[] = [];
  readonly #operations = new Map<string, StateOperation>();

  /** For `CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE`. */
  override get url(): string {
    return `${super.url}/compute/v1/`;
  }

  override get changes(): readonly string[] {
    return this.calls.filter((call) => /insert|delete/.test(call));
  }

  protected async receive(request: Request): Promise<CloudCall> {
    const call = readCall(request.method, new URL(request.url), await request.text());
    const perform = () => {
      const authorization = request.headers.get("authorization");
      if (!authorization?.startsWith("Bearer ")) problems.push(new Error(`${call.id}: no bearer token`));
      if (authorization !== `Bearer ${this.token}`)
        throw new Refusal(401, "authError", "Invalid Credentials");
      const answer = writeAnswer(call.id, this.#perform(call));
      return new Response(answer, { headers: { "content-type": "application/json" } });
    };
    return { name: call.id, perform };
  }

  protected refuse(status: number, reason: string, message: string): Response {
    const errors = [{ message, domain: "global", reason }];
    return Response.json({ error: { code: status, message, errors } }, { status });
  }

  protected override fail(status: number): Response {
    return this.refuse(status, "backendError", "Internal error");
  }

  #perform({ id, parameters, body }: ReadCall): object {
    const home = id === "compute.instances.get" ? PROJECT : (this.hostProject ?? PROJECT);
    if (parameters.project !== home) throw new Refusal(404, "notFound", `project ${parameters.project}`);
    switch (id) {
      case "compute.instances.get":
        return this.#instance(parameters.zone, parameters.instance);
      case "compute.routes.list":
        return this.#list(parameters);
      case "compute.routes.insert":
        return this.#insert(body as StateRoute);
      case "compute.routes.delete":
        return this.#delete(parameters.route ?? "");
      case "compute.globalOperations.get":
        return this.#operation(parameters.operation ?? "");
      default:
        throw new Error(id);
    }
  }

  #instance(zone = "", name = ""): object {
    const canIpForward = this.instances.get(name);
    if (canIpForward === undefined || zone !== ZONE)
      throw new Refusal(404, "notFound", `instance ${name} was not found`);
    return { kind: "compute#instance", name, zone, canIpForward, status: "RUNNING" };
  }

  #list({ maxResults = "500", pageToken = "0" }: Readonly<Record<string, string>>): object {
    const from = Number(pageToken);
    const to = from + Math.min(PAGE, Number(maxResults));
    return {
      kind: "compute#routeList",
      items: this.routes.slice(from, to),
      ...(to < this.routes.length ? { nextPageToken: String(to) } : {}),
    };
  }

  #insert(route: StateRoute): object {
    if (this.routes.some(({ name }) => name === route.name)) {
      throw new Refusal(
        409,
        "alreadyExists",
        `The resource 'projects/${PROJECT}/global/routes/${route.name}' already exists`,
      );
    }
    const instance = String(route.nextHopInstance).split("/").pop() ?? "";
    // A route and the instance it names are in one project.
    if (this.hostProject === undefined ? !this.instances.has(instance) : route.nextHopIp === undefined)
      throw new Refusal(400, "invalid", `nextHopInstance ${instance}`);
    const ending = this.endings.shift();
    // The API answers with full URLs, of the number of the project.
    const full = (path: unknown) =>
      `https://www.googleapis.com/compute/v1/${String(path).replace(PROJECT, "123456")}`;
    if (!ending) {
      this.routes.push({
        ...route,
        network: full(route.network),
        ...(route.nextHopInstance === undefined ? {} : { nextHopInstance: full(route.nextHopInstance) }),
        kind: "compute#route",
      });
    }
    return this.#start(ending);
  }

  #delete(name: string): object {
    const at = this.routes.findIndex((route) => route.name === name);
    if (at < 0)
      throw new Refusal(
        404,
        "notFound",
        `The resource 'projects/${PROJECT}/global/routes/${name}' was not found`,
      );
    this.routes.splice(at, 1);
    return this.#start(undefined);
  }

  #start(error: StateOperation["error"]): object {
    const name = `operation-${this.#operations.size + 1}`;
    this.#operations.set(name, { name, left: SLOWNESS, ...(error ? { error } : {}) });
    return { kind: "compute#operation", name, status: "RUNNING", progress: 0 };
  }

  #operation(name: string): object {
    const operation = this.#operations.get(name);
    if (!operation) throw new Refusal(404, "notFound", `operation ${name}`);
    operation.left -= 1;
    if (operation.left > 0) return { kind: "compute#operation", name, status: "RUNNING", progress: 50 };
    const { error } = operation;
    const ended = error
      ? { error: { errors: [{ code: error.code, message: error.code }] }, httpErrorStatusCode: error.status }
      : {};
    return { kind: "compute#operation", name, status: "DONE", progress: 100, ...ended };
  }
}
