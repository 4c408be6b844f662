import * as v from "valibot";

function wholeNumber(name: string, min: number, max: number) {
  const message = `${name} must be a whole number from ${min} to ${max}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(min, message), v.maxValue(max, message));
}

/** The `Backend` keys of gce, as documented. An absent or null key takes the default. */
export const options = v.object({
  /** Routes that fit: the project's quota "Routes". */
  RouteLimit: v.nullish(wholeNumber("RouteLimit", 1, 100_000), 250),
  CheckInterval: v.nullish(wholeNumber("CheckInterval", 1, 86_400), 300),
  RemoveStaleRoutes: v.nullish(v.boolean("RemoveStaleRoutes must be true or false"), true),
  StaleRouteGrace: v.nullish(wholeNumber("StaleRouteGrace", 1, 86_400), 900),
});

export type Options = v.InferOutput<typeof options>;
