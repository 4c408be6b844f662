import description from "./ec2-2016-11-15.json";

/** A shape of the API description, as far as the operations in use need it. */
interface Shape {
  readonly shape?: string;
  readonly type?: string;
  readonly locationName?: string;
  readonly required?: readonly string[];
  readonly members?: Readonly<Record<string, Shape>>;
  readonly member?: Shape;
}

interface Operation {
  readonly input: Shape;
  readonly output?: Shape;
}

const operations: Readonly<Record<string, Operation>> = description.operations;
const shapes: Readonly<Record<string, Shape>> = description.shapes;

/** Parameters of a call, as the API description names them. */
export type Parameters = Readonly<Record<string, unknown>>;

/** A request that the API description does not allow. */
export class BadQuery extends Error {
  override readonly name = "BadQuery";
}

/**
 * Reads the form of an EC2 query request by the description of the API: every parameter has to be one, lists have to be
 * numbered from 1, values have to be of their type, and what is required has to be there. Throws BadQuery.
 */
export function readQuery(form: URLSearchParams): {
  readonly action: string;
  readonly parameters: Parameters;
} {
  const action = form.get("Action") ?? "";
  const operation = operations[action];
  if (!operation) throw new BadQuery(`no operation "${action}" in this description`);
  if (form.get("Version") !== description.metadata.apiVersion)
    throw new BadQuery(`Version ${form.get("Version")}`);
  const left = new Map([...form].filter(([name]) => name !== "Action" && name !== "Version"));
  if (left.size + 2 !== [...form].length) throw new BadQuery("a parameter is given twice");
  const parameters = readStructure(resolve(operation.input), "", left);
  if (left.size > 0) throw new BadQuery(`${action} has no parameter ${[...left.keys()].join(", ")}`);
  return { action, parameters: parameters as Parameters };
}

/** The answer of an operation as XML; a member that the description does not name is an error of the test. */
export function writeAnswer(action: string, value: Parameters): string {
  const output = operations[action]?.output;
  const body = output ? writeStructure(resolve(output), value, action) : "<return>true</return>";
  return `<?xml version="1.0" encoding="UTF-8"?>
<${action}Response xmlns="${description.metadata.xmlNamespace}/"><requestId>${crypto.randomUUID()}</requestId>${body}</${action}Response>`;
}

function resolve(shape: Shape): Shape {
  return shape.shape === undefined
    ? shape
    : {
        ...shape,
        ...shapes[shape.shape],
        ...(shape.locationName ? { locationName: shape.locationName } : {}),
      };
}

/** The ec2 protocol: `queryName`, else the location with its first letter in upper case, else the member. */
function nameOf(member: string, { locationName }: Shape): string {
  return locationName === undefined ? member : locationName.slice(0, 1).toUpperCase() + locationName.slice(1);
}

function read(shape: Shape, name: string, left: Map<string, string>): unknown {
  if (shape.type === "structure") return readStructure(shape, `${name}.`, left);
  if (shape.type === "list") return readList(shape, name, left);
  const text = left.get(name);
  if (text === undefined) return undefined;
  left.delete(name);
  if (shape.type === "boolean") {
    if (text !== "true" && text !== "false") throw new BadQuery(`${name}=${text} is no boolean`);
    return text === "true";
  }
  if (shape.type === "integer") {
    if (!/^-?\d+$/.test(text)) throw new BadQuery(`${name}=${text} is no integer`);
    return Number(text);
  }
  return text;
}

function readStructure(shape: Shape, prefix: string, left: Map<string, string>): Parameters | undefined {
  const found: Record<string, unknown> = {};
  for (const [member, each] of Object.entries(shape.members ?? {})) {
    const value = read(resolve(each), prefix + nameOf(member, resolve(each)), left);
    if (value !== undefined) found[member] = value;
  }
  if (prefix !== "" && Object.keys(found).length === 0) return undefined;
  for (const member of shape.required ?? []) {
    if (!(member in found)) throw new BadQuery(`${prefix}${member} is required`);
  }
  return found;
}

function readList(shape: Shape, name: string, left: Map<string, string>): readonly unknown[] | undefined {
  const values: unknown[] = [];
  for (let at = 1; ; at++) {
    const value = read(resolve(shape.member ?? {}), `${name}.${at}`, left);
    if (value === undefined) break;
    values.push(value);
  }
  return values.length === 0 ? undefined : values;
}

function write(shape: Shape, value: unknown, path: string): string {
  if (shape.type === "structure") return writeStructure(shape, value as Parameters, path);
  if (shape.type === "list") {
    const member = resolve(shape.member ?? {});
    const tag = member.locationName ?? "item";
    return (value as readonly unknown[])
      .map((each) => `<${tag}>${write(member, each, path)}</${tag}>`)
      .join("");
  }
  return Bun.escapeHTML(String(value));
}

function writeStructure(shape: Shape, value: Parameters, path: string): string {
  return Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .map(([member, each]) => {
      const known = shape.members?.[member];
      if (!known) throw new Error(`${path} has no member ${member}`);
      const resolved = resolve(known);
      const tag = resolved.locationName ?? member;
      return `<${tag}>${write(resolved, each, `${path}.${member}`)}</${tag}>`;
    })
    .join("");
}
