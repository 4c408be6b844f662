import * as v from "valibot";

/** The `Backend` keys of aws-vpc. */
export const OPTION_NAMES = [
  "RouteTableID",
  "RouteTableFilter",
  "RouteLimit",
  "AllowIMDSv1",
  "CheckInterval",
  "RemoveStaleRoutes",
  "StaleRouteGrace",
] as const;

const seconds = (name: string, least: number) => wholeNumber(name, least, 86_400);

function wholeNumber(name: string, min: number, max: number) {
  const message = `${name} must be a whole number from ${min} to ${max}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(min, message), v.maxValue(max, message));
}

/** An absent or null key takes the default, as Go's decoder leaves the zero value alone on null. */
const flag = (name: string, fallback: boolean) =>
  v.nullish(v.boolean(`${name} must be true or false`), fallback);

const tableId = v.pipe(
  v.string("RouteTableID must be the id of a route table, or a list of them"),
  v.regex(/^rtb-[0-9a-z]+$/, 'RouteTableID must look like "rtb-0123456789abcdef0"'),
);

const filter = v.pipe(
  v.string('RouteTableFilter must be a list of texts such as "tag:flannel=true"'),
  v.regex(/^tag:[^=]+=.*$/, 'RouteTableFilter must hold texts such as "tag:flannel=true"'),
);

/** As documented; `RouteTableID` and `RouteTableFilter` are lists afterwards. */
export const options = v.pipe(
  v.object({
    /** Tables that get the routes; without it those of the filter, else the one of the subnet. */
    RouteTableID: v.nullish(
      v.union(
        [
          v.array(tableId, "RouteTableID must be a list of ids"),
          v.pipe(
            tableId,
            v.transform((id) => [id]),
          ),
        ],
        'RouteTableID must look like "rtb-0123456789abcdef0", or be a list of such ids',
      ),
      [],
    ),
    /** Tags that tables of this VPC must have, all of them. */
    RouteTableFilter: v.nullish(
      v.array(filter, 'RouteTableFilter must be a list of texts such as "tag:flannel=true"'),
      [],
    ),
    /** Routes of one family per table: AWS's quota was 50 for long; it is raised on request. */
    RouteLimit: v.nullish(wholeNumber("RouteLimit", 1, 1_000), 50),
    AllowIMDSv1: flag("AllowIMDSv1", false),
    CheckInterval: v.nullish(seconds("CheckInterval", 1), 300),
    RemoveStaleRoutes: flag("RemoveStaleRoutes", true),
    StaleRouteGrace: v.nullish(seconds("StaleRouteGrace", 1), 900),
  }),
  v.forward(
    v.check(
      ({ RouteTableID, RouteTableFilter }) => RouteTableID.length === 0 || RouteTableFilter.length === 0,
      "RouteTableFilter must not be given together with RouteTableID",
    ),
    ["RouteTableFilter"],
  ),
);

export type Options = v.InferOutput<typeof options>;
