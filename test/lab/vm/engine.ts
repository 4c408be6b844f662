/**
 * Environment of daemons: in a guest, where every instruction is interpreted, machine code that JavaScriptCore makes for
 * what runs a few times costs more than it gains, and so does collecting in parallel on one processor. A start takes
 * three fifths of the time without. `BUN_JSC_useJIT=0` would go too far: calls into libc need it.
 */
export const ENGINE_ENV: Readonly<Record<string, string>> =
  process.env.FLANNEL_VM === "1"
    ? {
        BUN_JSC_useBaselineJIT: "0",
        BUN_JSC_useDFGJIT: "0",
        BUN_JSC_useRegExpJIT: "0",
        BUN_JSC_useDOMJIT: "0",
        BUN_JSC_useConcurrentGC: "0",
        BUN_JSC_numberOfGCMarkers: "1",
      }
    : {};
