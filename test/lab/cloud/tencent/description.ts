import description from "./vpc-2017-03-12.json";

interface Field {
  readonly type: string;
  readonly list?: boolean;
  readonly required?: boolean;
}

const interfaces = description.interfaces as unknown as Readonly<
  Record<string, Readonly<Record<string, Field>>>
>;

/** Version of the API that is described. */
export const VERSION = description.version;

/**
 * Checks a request (`CreateRoutesRequest`) or an answer (`CreateRoutesResponse`) by the description of the API; throws
 * when anything in it is not allowed, or something required is missing.
 */
export function check(name: string, value: unknown, path = name): void {
  const fields = interfaces[name];
  if (!fields) throw new Error(`no "${name}" in this description`);
  if (typeof value !== "object" || value === null) throw new Error(`${path} is no object`);
  for (const [key, each] of Object.entries(value)) {
    const field = fields[key];
    if (!field) throw new Error(`${path} has no ${key}`);
    if (field.list && !Array.isArray(each)) throw new Error(`${path}.${key} is no list`);
    for (const one of field.list ? (each as readonly unknown[]) : [each]) {
      if (["string", "number", "boolean"].includes(field.type)) {
        if (typeof one !== field.type) throw new Error(`${path}.${key} is no ${field.type}`);
      } else check(field.type, one, `${path}.${key}`);
    }
  }
  for (const [key, { required }] of Object.entries(fields)) {
    if (required && !(key in value)) throw new Error(`${path}: ${key} is required`);
  }
}
