import * as v from "valibot";

function wholeNumber(name: string, min: number, max: number) {
  const message = `${name} must be a whole number from ${min} to ${max}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(min, message), v.maxValue(max, message));
}

const ENDPOINT = "Endpoint must be a host name, or http:// or https:// with one, and nothing behind it";

/** Empty, or what the client can be pointed to: it asks for no path but `/`. */
const endpoint = v.pipe(v.string(ENDPOINT), v.regex(/^((https?:\/\/)?[^\s/?#]+\/?)?$/, ENDPOINT));

/** The `Backend` keys of ali-vpc, as documented; the first two are upstream's. An absent or null key takes the default. */
export const options = v.object({
  /** Empty: `ACCESS_KEY_ID` and `ACCESS_KEY_SECRET` as upstream, else the chain of the official library. */
  AccessKeyID: v.nullish(v.string("AccessKeyID must be text"), ""),
  AccessKeySecret: v.nullish(v.string("AccessKeySecret must be text"), ""),
  /** Host name of the VPC API, or URL; empty: the region's. */
  Endpoint: v.nullish(endpoint, ""),
  /** Custom entries that fit into the route table. */
  RouteLimit: v.nullish(wholeNumber("RouteLimit", 1, 10_000), 200),
  CheckInterval: v.nullish(wholeNumber("CheckInterval", 1, 86_400), 300),
  RemoveStaleRoutes: v.nullish(v.boolean("RemoveStaleRoutes must be true or false"), true),
  StaleRouteGrace: v.nullish(wholeNumber("StaleRouteGrace", 1, 86_400), 900),
});

export type Options = v.InferOutput<typeof options>;
