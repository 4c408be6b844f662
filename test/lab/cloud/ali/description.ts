import description from "./vpc-2016-04-28.json";

interface Shape {
  readonly type: string;
  readonly member?: Shape;
  readonly members?: Readonly<Record<string, Shape>>;
}

const actions = description.actions as unknown as Readonly<
  Record<
    string,
    { readonly request: Readonly<Record<string, Shape>>; readonly response: Readonly<Record<string, Shape>> }
  >
>;

/** Version of the API that is described. */
export const VERSION = description.version;

/** Checks the parameters of an action by the description of the API; throws when one is not allowed. */
export function checkQuery(action: string, query: URLSearchParams): Readonly<Record<string, string>> {
  const known = actions[action];
  if (!known) throw new Error(`no action "${action}" in this description`);
  const found: Record<string, string> = {};
  for (const [name, value] of query) {
    const shape = known.request[name];
    if (!shape) throw new Error(`${action} has no parameter ${name}`);
    if (name in found) throw new Error(`${action}: ${name} is given twice`);
    if (shape.type === "number" && !/^\d+$/.test(value))
      throw new Error(`${action}: ${name}=${value} is no number`);
    if (shape.type === "boolean" && !/^(true|false)$/.test(value))
      throw new Error(`${action}: ${name}=${value} is no boolean`);
    found[name] = value;
  }
  return found;
}

/** An answer of an action; what the description does not know in it is an error of the test. */
export function checkAnswer(action: string, value: Readonly<Record<string, unknown>>): string {
  check(value, { type: "object", members: actions[action]?.response ?? {} }, action);
  return JSON.stringify(value);
}

function check(value: unknown, shape: Shape, path: string): void {
  if (shape.type === "object") {
    for (const [name, each] of Object.entries(value as object)) {
      const member = shape.members?.[name];
      if (!member) throw new Error(`${path} has no ${name}`);
      check(each, member, `${path}.${name}`);
    }
  } else if (shape.type === "list") {
    for (const each of value as readonly unknown[])
      check(each, shape.member ?? { type: "string" }, `${path}[]`);
  } else if (typeof value !== shape.type) throw new Error(`${path} is no ${shape.type}`);
}
