import assert from 'node:assert/strict'

/** One line of a scrape. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** The content of one scrape. */
export class Scrape {
  readonly samples: readonly Sample[]
  readonly text: string

  constructor(text: string) {
    this.text = text
    this.samples = text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map(sampleOf)
  }

  get names(): ReadonlySet<string> {
    return new Set(this.samples.map(({ name }) => name))
  }

  /** The samples of a metric with these labels, whatever others they have. */
  of(name: string, labels: Readonly<Record<string, string>> = {}): readonly Sample[] {
    const wanted = Object.entries(labels)
    return this.samples.filter(
      (sample) => sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value),
    )
  }

  /** The sum of those. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number {
    return this.of(name, labels).reduce((sum, { value }) => sum + value, 0)
  }

  /** All values that a label has. */
  valuesOf(label: string): ReadonlySet<string> {
    return new Set(this.samples.flatMap(({ labels }) => labels[label] ?? []))
  }
}

function sampleOf(line: string): Sample {
  const [, name = '', inner = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? assert.fail(line)
  const labels: Record<string, string> = {}
  for (const [, label = '', text = ''] of inner.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[label] = text.replaceAll(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char))
  }
  return { name, labels, value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value) }
}
