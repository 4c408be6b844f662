import {
  type CloudChange,
  CloudError,
  type CloudHost,
  type CloudPlace,
  type CloudReading,
  type CloudRoute,
  type HostFacts,
} from "flannel/sdk";
import { Api } from "./api.ts";
import { type Entry, MARK, toRoute } from "./entry.ts";
import { codeOf, isBusy, toCloudError } from "./errors.ts";
import { type Identity, identify } from "./metadata.ts";
import type { Options } from "./options.ts";

/** Largest pages (DescribeRouteEntryList: MaxResult; DescribeRouteTableList: PageSize). */
const ENTRIES_PAGE = 100;
const TABLES_PAGE = 50;
/** How long a change is waited for, ms, and how often it is looked at: upstream's minute, in shorter steps. */
const PATIENCE_MS = 60_000;
const STEP_MS = 500;

interface Place extends Identity {
  readonly api: Api;
  readonly signal: AbortSignal;
  readonly table: string;
}

interface Table {
  readonly RouteTableId?: string;
  readonly RouteTableType?: string;
  readonly VSwitchIds?: { readonly VSwitchId?: readonly string[] };
}

interface TablePage {
  readonly RouterTableList?: { readonly RouterTableListType?: readonly Table[] };
  readonly TotalCount?: number;
}

interface EntryPage {
  readonly RouteEntrys?: { readonly RouteEntry?: readonly Entry[] };
  readonly NextToken?: string;
}

/** The route table of the VPC this instance is in. */
export class Vpc {
  readonly #options: Options;
  #place: Place | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Metadata → region, VPC, vSwitch → the vSwitch's own route table, else the system one. */
  async discover({ signal }: CloudHost, _facts: HostFacts): Promise<CloudPlace> {
    this.#place = undefined;
    const identity = await identify(signal);
    const api = await Api.open(this.#options, identity.region);
    const table = await findTable(api, identity);
    this.#place = { ...identity, api, signal, table };
    const { region, vpc, instance } = identity;
    return { summary: `${region} ${vpc} ${instance}, table ${table}`, self: instance };
  }

  /** All pages of the table. */
  async read(): Promise<CloudReading> {
    const { table } = this.#here();
    return { tables: [{ id: table, routes: await this.#entries({}), limit: this.#options.RouteLimit }] };
  }

  /** No call replaces an entry: it is removed and made anew; each is waited for. */
  async apply(change: CloudChange): Promise<void> {
    if (change.action === "set") return;
    if (change.action === "mark") return this.#mark(change.former);
    if (change.action !== "create") await this.#remove(change.former);
    if (change.action !== "delete") await this.#create(change.dst, change.target);
  }

  async #create(dst: string, instance: string): Promise<void> {
    const { region, table } = this.#here();
    await this.#change("CreateRouteEntry", {
      RegionId: region,
      RouteTableId: table,
      DestinationCidrBlock: dst,
      NextHopType: "Instance",
      NextHopId: instance,
      Description: MARK,
      ClientToken: crypto.randomUUID(),
    });
    await this.#settle("CreateRouteEntry", dst, instance, "active");
  }

  /** Gives an entry our description; it goes on all the while. */
  async #mark({ dst, id }: CloudRoute): Promise<void> {
    const { region, table } = this.#here();
    await this.#change("ModifyRouteEntry", {
      RegionId: region,
      Description: MARK,
      ...(id === undefined ? { RouteTableId: table, DestinationCidrBlock: dst } : { RouteEntryId: id }),
    });
  }

  /** One that is gone already is fine. */
  async #remove({ dst, target, id }: CloudRoute): Promise<void> {
    const { region, table } = this.#here();
    await this.#change(
      "DeleteRouteEntry",
      id === undefined
        ? { RegionId: region, RouteTableId: table, DestinationCidrBlock: dst, NextHopId: target }
        : { RegionId: region, RouteEntryId: id },
      /^(InvalidRouteEntry|InvalidRouteEntryId|RouteEntry)\.NotFound$/,
    );
    await this.#settle("DeleteRouteEntry", dst, target, "gone");
  }

  /** A call that waits its turn while the table works on an earlier change. `harmless`: codes that are no failure. */
  async #change(action: string, query: Readonly<Record<string, string>>, harmless?: RegExp): Promise<void> {
    const { api, signal } = this.#here();
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        await api.ask(action, query);
        return;
      } catch (error) {
        if (harmless?.test(codeOf(error))) return;
        if (!isBusy(error) || signal.aborted || performance.now() > end) throw toCloudError(error, action);
        await Bun.sleep(STEP_MS * (1 + Math.random()));
      }
    }
  }

  /** Waits until the entries of a destination are as asked for, or somebody else's: that is another look's business. */
  async #settle(action: string, dst: string, self: string, wanted: "active" | "gone"): Promise<void> {
    const { signal, table } = this.#here();
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      const routes = await this.#entries({ DestinationCidrBlock: dst });
      const own = routes.find(({ target }) => target === self);
      if (wanted === "gone" ? !own : own?.state === "active" || (!own && routes.length > 0)) return;
      if (signal.aborted || performance.now() > end) {
        const text = `${dst} in ${table} is not as asked for after ${PATIENCE_MS / 1_000} s`;
        const fix = "See VPC console → Route Tables; it is looked at again by itself.";
        throw new CloudError("unreachable", `vpc:${action}`, text, fix);
      }
      await Bun.sleep(STEP_MS);
    }
  }

  async #entries(filter: Readonly<Record<string, string>>): Promise<readonly CloudRoute[]> {
    const { api, region, table } = this.#here();
    const routes: CloudRoute[] = [];
    let token: string | undefined;
    do {
      const page: EntryPage = await api.call<EntryPage>("DescribeRouteEntryList", {
        RegionId: region,
        RouteTableId: table,
        MaxResult: String(ENTRIES_PAGE),
        NextToken: token,
        ...filter,
      });
      routes.push(...(page.RouteEntrys?.RouteEntry ?? []).map(toRoute));
      token = page.NextToken || undefined;
    } while (token !== undefined);
    // The filter of the API is a convenience; only the very prefix is meant.
    const { DestinationCidrBlock: dst } = filter;
    return dst === undefined ? routes : routes.filter((route) => route.dst === dst);
  }

  #here(): Place {
    if (!this.#place) throw new CloudError("refused", "ali-vpc", "nothing is discovered yet", "");
    return this.#place;
  }
}

async function findTable(api: Api, { region, vpc, vSwitch }: Identity): Promise<string> {
  const tables: Table[] = [];
  for (let number = 1; ; number++) {
    const page = await api.call<TablePage>("DescribeRouteTableList", {
      RegionId: region,
      VpcId: vpc,
      PageNumber: String(number),
      PageSize: String(TABLES_PAGE),
    });
    const found = page.RouterTableList?.RouterTableListType ?? [];
    tables.push(...found);
    if (found.length === 0 || tables.length >= (page.TotalCount ?? 0)) break;
  }
  const own = tables.find(({ VSwitchIds }) => VSwitchIds?.VSwitchId?.includes(vSwitch));
  const id = (own ?? tables.find(({ RouteTableType }) => RouteTableType === "System"))?.RouteTableId;
  if (id !== undefined) return id;
  const text = `${vpc} has no route table for ${vSwitch}, and no system one`;
  throw new CloudError("missing", "vpc:DescribeRouteTableList", text, "See VPC console → Route Tables.");
}
