import description from "./compute.v1.json";

/** A value of the discovery document, as far as the methods in use need it. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly readOnly?: boolean;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly annotations?: { readonly required?: readonly string[] };
}

interface Parameter extends Schema {
  readonly location: string;
  readonly required?: boolean;
}

interface Method {
  readonly httpMethod: string;
  readonly path: string;
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly request?: Schema;
  readonly response: Schema;
}

const methods: Readonly<Record<string, Method>> = description.methods as Readonly<Record<string, Method>>;
const schemas: Readonly<Record<string, Schema>> = description.schemas as Readonly<Record<string, Schema>>;

/** A call as the description reads it. */
export interface ReadCall {
  /** `compute.routes.insert` */
  readonly id: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Reads a request by the description of the API; throws when it has no such method, or anything in it is not allowed. */
export function readCall(method: string, url: URL, body: string): ReadCall {
  const path = url.pathname.replace(/^\//, "");
  for (const [id, each] of Object.entries(methods)) {
    if (each.httpMethod !== method) continue;
    const parameters = matchPath(description.servicePath + each.path, path);
    if (!parameters) continue;
    for (const [name, value] of url.searchParams) {
      if (each.parameters[name]?.location !== "query") throw new Error(`${id} has no parameter ${name}`);
      parameters[name] = value;
    }
    for (const [name, parameter] of Object.entries(each.parameters)) {
      const value = parameters[name];
      if (value === undefined && parameter.required) throw new Error(`${id}: ${name} is required`);
      if (value !== undefined) checkText(value, parameter, `${id}: ${name}`);
    }
    const parsed = each.request ? (JSON.parse(body) as Readonly<Record<string, unknown>>) : {};
    if (!each.request && body !== "") throw new Error(`${id} takes no body`);
    if (each.request) check(parsed, each.request, id, { id, path: id, asking: true });
    return { id, parameters, body: parsed };
  }
  throw new Error(`no method ${method} ${path} in this description`);
}

/** An answer of a method; what the description does not know in it is an error of the test. */
export function writeAnswer(id: string, value: object): string {
  const method = methods[id];
  if (!method) throw new Error(`no method ${id}`);
  check(value, method.response, id, { id, path: id, asking: false });
  return JSON.stringify(value);
}

function matchPath(template: string, path: string): Record<string, string> | undefined {
  const wanted = template.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return undefined;
  const found: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name !== undefined) found[name] = decodeURIComponent(given[at] ?? "");
    else if (part !== given[at]) return undefined;
  }
  return found;
}

interface Context {
  readonly id: string;
  readonly path: string;
  /** Whether this is a request: what is read-only must not be in it, and what is required must. */
  readonly asking: boolean;
}

function check(value: unknown, given: Schema, path: string, context: Context): void {
  const schema = given.$ref === undefined ? given : { ...schemas[given.$ref], type: "object" };
  if (context.asking && given.readOnly) throw new Error(`${path} is read-only`);
  if (schema.type === "array") {
    if (!Array.isArray(value)) throw new Error(`${path} is no list`);
    for (const each of value) check(each, schema.items ?? {}, `${path}[]`, context);
  } else if (schema.type === "object") {
    if (typeof value !== "object" || value === null) throw new Error(`${path} is no object`);
    const properties = schema.properties ?? {};
    for (const [name, each] of Object.entries(value)) {
      const property = properties[name];
      if (!property) throw new Error(`${path} has no ${name}`);
      check(each, property, `${path}.${name}`, context);
    }
    for (const [name, property] of Object.entries(properties)) {
      const required = context.asking && property.annotations?.required?.includes(context.id);
      if (required && !(name in value)) throw new Error(`${path}: ${name} is required`);
    }
  } else if (schema.type === "boolean") {
    if (typeof value !== "boolean") throw new Error(`${path} is no boolean`);
  } else if (schema.type === "integer") {
    if (!Number.isInteger(value)) throw new Error(`${path} is no integer`);
  } else if (schema.type === "string") {
    if (typeof value !== "string") throw new Error(`${path} is no text`);
    checkText(value, schema, path);
  }
}

function checkText(value: string, schema: Schema, path: string): void {
  if (schema.pattern !== undefined && !new RegExp(`^(?:${schema.pattern})$`).test(value)) {
    throw new Error(`${path}=${value} does not match ${schema.pattern}`);
  }
  if (schema.enum && !schema.enum.includes(value))
    throw new Error(`${path}=${value} is not one of ${schema.enum}`);
  if (schema.type === "integer" && !/^\d+$/.test(value)) throw new Error(`${path}=${value} is no integer`);
}
