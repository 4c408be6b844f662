/**
 * Just enough of the WebAssembly binary format (webassembly.github.io/spec, SIMD included) to write one function down
 * in TypeScript: no compiler, no binary file in the repository.
 */
export const I32 = 0x7f;
export const I64 = 0x7e;
export const V128 = 0x7b;

/** Instructions by the names of the text format. Those with operands are functions. */
export const op = {
  block: [0x02, 0x40],
  loop: [0x03, 0x40],
  if: [0x04, 0x40],
  end: [0x0b],
  br: (depth: number) => [0x0c, depth],
  br_if: (depth: number) => [0x0d, depth],
  get: (local: number) => [0x20, local],
  set: (local: number) => [0x21, local],
  i32_const: (value: number) => [0x41, ...signed(value)],
  i64_const: (value: number) => [0x42, ...signed(value)],
  i32_ge_u: [0x4f],
  i32_add: [0x6a],
  i32_sub: [0x6b],
  i32_and: [0x71],
  i64_add: [0x7c],
  i64_and: [0x83],
  i64_shr_u: [0x88],
  i32_wrap_i64: [0xa7],
  i64_extend_i32_u: [0xad],
  i64_load8_u: [0x31, 0, 0],
  i64_load16_u: [0x33, 0, 0],
  i64_load32_u: [0x35, 0, 0],
  v128_load: (offset: number) => [0xfd, 0x00, 0, offset],
  i32x4_extract_lane: (lane: number) => [0xfd, 0x1b, lane],
  i32x4_extadd_pairwise_i16x8_u: [0xfd, 0x7f],
  i32x4_add: [0xfd, 0xae, 0x01],
} as const;

/** One exported function over an imported memory (`env.memory`). */
export interface WasmFunction {
  readonly name: string;
  readonly parameters: readonly number[];
  readonly result: number;
  readonly locals: readonly number[];
  readonly body: readonly (readonly number[])[];
}

/** Module bytes. `pages` is the exact size of the imported memory. */
export function encodeModule(pages: number, code: WasmFunction): Uint8Array<ArrayBuffer> {
  const locals = code.locals.flatMap((type) => [1, type]);
  const body = [...unsigned(code.locals.length), ...locals, ...code.body.flat(), ...op.end];
  return new Uint8Array([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, [1, 0x60, code.parameters.length, ...code.parameters, 1, code.result]),
    ...section(2, [1, ...name("env"), ...name("memory"), 0x02, 0x01, ...unsigned(pages), ...unsigned(pages)]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...name(code.name), 0x00, 0]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ]);
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content];
}

function name(text: string): number[] {
  const bytes = new TextEncoder().encode(text);
  return [...unsigned(bytes.length), ...bytes];
}

/** LEB128. */
function unsigned(value: number): number[] {
  const low = value & 0x7f;
  return value > 0x7f ? [low | 0x80, ...unsigned(value >>> 7)] : [low];
}

/** Signed LEB128. */
function signed(value: number): number[] {
  const low = value & 0x7f;
  const rest = value >> 7;
  const done = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
  return done ? [low] : [low | 0x80, ...signed(rest)];
}
