/** Options worth trying beside none at all; a plugin that is not listed is tried with its defaults. */
const OPTIONS: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
  vxlan: [{}, { VNI: 5, Port: 4789, MTU: 1400, GBP: true }, { DirectRouting: true }, { Learning: true }],
  template: [{}, { Metric: 50 }],
  commands: [{}, { Protocol: 150 }],
};

/** The sample options of a plugin. */
export function optionSamples(name: string): readonly Readonly<Record<string, unknown>>[] {
  return OPTIONS[name] ?? [{}];
}
