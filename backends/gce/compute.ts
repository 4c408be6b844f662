import {
  type CloudChange,
  CloudError,
  type CloudHost,
  type CloudPlace,
  type CloudReading,
  type CloudRoute,
  type Finding,
  type HostFacts,
} from "flannel/sdk";
import { Api } from "./api.ts";
import { type Identity, identify } from "./metadata.ts";
import type { Options } from "./options.ts";
import { type ApiRoute, routeName, toRoute } from "./route.ts";

/** Largest page of a list (compute/v1, maxResults). */
const PAGE = "500";
/** As upstream: below the default of routes that are made by hand, so that these win on a tie of length. */
const PRIORITY = 1_000;

interface Place extends Identity {
  readonly api: Api;
  /** This node as a next hop. */
  readonly self: string;
}

interface Page {
  readonly items?: readonly ApiRoute[];
  readonly nextPageToken?: string;
}

/** The routes of the VPC network this instance is in. */
export class Compute {
  readonly #options: Options;
  #place: Place | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Metadata → project, zone, instance, and the network of the interface that has the node's address. */
  async discover({ signal }: CloudHost, { external }: HostFacts): Promise<CloudPlace> {
    this.#place = undefined;
    const identity = await identify(external.ipv4, signal);
    const { project, networkProject, zone, instance, network } = identity;
    // A route may name an instance of its own project only; of a Shared VPC's service project it takes the address.
    const isShared = networkProject !== project;
    const self = isShared ? (external.ipv4 ?? "") : `${zone}/${instance}`;
    this.#place = { ...identity, self, api: await Api.open(project, signal) };
    const where = isShared ? `${network} of ${networkProject}` : network;
    return { summary: `${project} ${zone} ${instance}, network ${where}`, self };
  }

  /** All pages of the routes of the network's project, and whether the instance may forward packets. */
  async read(): Promise<CloudReading> {
    const { api, project, networkProject, zone, instance, network } = this.#here();
    const where = `projects/${project}/zones/${zone}/instances/${instance}`;
    const { canIpForward } = await api.call<{ readonly canIpForward?: boolean }>(
      "compute.instances.get",
      "GET",
      where,
    );
    const list = `projects/${networkProject}/global/routes`;
    const routes: CloudRoute[] = [];
    let pageToken = "";
    do {
      const params = { maxResults: PAGE, ...(pageToken === "" ? {} : { pageToken }) };
      const page = await api.call<Page>("compute.routes.list", "GET", list, { params });
      routes.push(...(page.items ?? []).map((each) => toRoute(each, network)));
      pageToken = page.nextPageToken ?? "";
    } while (pageToken !== "");
    return {
      tables: [{ id: network, routes, limit: this.#options.RouteLimit }],
      findings: canIpForward === true ? [] : [noForwarding(instance)],
    };
  }

  /** Starts the operation and waits for its end. There is no call that replaces a route: it is removed and made. */
  async apply(change: CloudChange): Promise<void> {
    // By their names routes are marked from the beginning.
    if (change.action === "set" || change.action === "mark") return;
    if (change.action !== "create") await this.#remove(change.former);
    if (change.action !== "delete") await this.#create(change.dst);
  }

  async #create(destRange: string): Promise<void> {
    const { api, project, networkProject, zone, instance, network, self } = this.#here();
    const nextHop =
      networkProject === project
        ? { nextHopInstance: `projects/${project}/zones/${zone}/instances/${instance}` }
        : { nextHopIp: self };
    const route = {
      name: routeName(destRange),
      description: "flannel",
      destRange,
      network: `projects/${networkProject}/global/networks/${network}`,
      ...nextHop,
      priority: PRIORITY,
    };
    const where = `projects/${networkProject}/global/routes`;
    await api.run("compute.routes.create", "POST", networkProject, where, route);
  }

  /** One that is gone already is fine. */
  async #remove({ id, dst }: CloudRoute): Promise<void> {
    const { api, networkProject } = this.#here();
    const path = `projects/${networkProject}/global/routes/${id ?? routeName(dst)}`;
    try {
      await api.run("compute.routes.delete", "DELETE", networkProject, path);
    } catch (error) {
      if (!(error instanceof CloudError && error.kind === "missing")) throw error;
    }
  }

  #here(): Place {
    if (!this.#place) throw new CloudError("refused", "gce", "nothing is discovered yet", "");
    return this.#place;
  }
}

function noForwarding(instance: string): Finding {
  return {
    code: "GCE_NO_IP_FORWARDING",
    severity: "error",
    title: "the cloud drops packets of containers",
    text: `${instance} was made without IP forwarding`,
    fix:
      "Allow it: gcloud compute instances export/update-from-file with canIpForward: true (it restarts the instance), " +
      "or make the instance anew with --can-ip-forward.",
  };
}
