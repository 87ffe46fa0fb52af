/** A metric with its samples, as a scrape has it. */
interface Family {
  /** The `# HELP` and `# TYPE` lines. */
  readonly comments: string[]
  isSum: boolean
  /** The value by series, such as `calls_total{model="a"}`. */
  readonly samples: Map<string, number>
}

type Families = Map<string, Family>

/** The scrape of one worker; null if it did not answer in time. */
export interface WorkerScrape {
  readonly number: number
  readonly text: string | null
}

const ANSWERED = 'model_gateway_worker_answered'
/** The series with labels that callers may send. */
const ATTRIBUTED = 'model_gateway_attributed_'
/** The most series of a metric that ended workers leave, if one worker alone does not have more. */
const MAX_ENDED = 10_000
const SENT_LABELS = /(model_gateway_(?:user|tag_\w+))="(?:[^"\\]|\\.)*"/g
const OWN_LABELS = /(model_gateway_(?:account|key))="(?:[^"\\]|\\.)*"/g
const COMMENT = /^# (?:HELP|TYPE|UNIT) (\S+)(?: (counter|histogram))?/

/**
 * Merges the scrapes of all workers. Counters and histograms are summed, so that their series do not grow with the number
 * of workers; what a worker had counted stays in the sum when it ends or does not answer, because a rate would read a drop
 * as a reset. All other series get a label with the number of their worker.
 */
export class MergedMetrics<Worker> {
  /** The last figures of each worker. */
  readonly #last = new Map<Worker, Families>()
  readonly #ended: Families = new Map()

  merge(scrapes: ReadonlyMap<Worker, WorkerScrape>): string {
    const page: Families = new Map()
    addSums(page, this.#ended)
    for (const [worker, { number, text }] of scrapes) {
      if (text !== null) this.#last.set(worker, familiesIn(text))
      const last = this.#last.get(worker)
      if (last === undefined) continue
      addSums(page, last)
      if (text !== null) addOwn(page, last, number)
    }
    page.set(ANSWERED, {
      comments: [
        `# HELP ${ANSWERED} 1 for a worker that has answered this scrape, 0 for one that did not in time`,
        `# TYPE ${ANSWERED} gauge`,
      ],
      isSum: false,
      samples: new Map(
        [...scrapes.values()].map(({ number, text }) => [
          `${ANSWERED}{worker="${number}"}`,
          text === null ? 0 : 1,
        ]),
      ),
    })
    return textOf(page)
  }

  /** Keeps what a worker had counted, after its end. What callers sent must not add up from worker to worker. */
  end(worker: Worker): void {
    addSums(this.#ended, this.#last.get(worker) ?? new Map(), endedSeries)
    this.#last.delete(worker)
  }
}

function familiesIn(scrape: string): Families {
  const families: Families = new Map()
  let family: Family | undefined
  for (const line of scrape.split('\n')) {
    const [, name, sum] = COMMENT.exec(line) ?? []
    if (name !== undefined) {
      family = families.get(name) ?? { comments: [], isSum: false, samples: new Map() }
      families.set(name, family)
      family.comments.push(line)
      if (line.startsWith('# TYPE')) family.isSum = sum !== undefined
    } else if (line !== '' && !line.startsWith('#')) {
      const space = line.lastIndexOf(' ')
      family?.samples.set(line.slice(0, space), Number(line.slice(space + 1)))
    }
  }
  return families
}

/** Returns where to keep a series of an ended worker: with `other` for what callers sent if there are too many, then for all. */
function endedSeries(series: string, kept: ReadonlyMap<string, number>, ofWorker: number): string {
  const max = Math.max(MAX_ENDED, ofWorker)
  if (!series.startsWith(ATTRIBUTED) || kept.has(series) || kept.size < max) return series
  const unsent = series.replaceAll(SENT_LABELS, '$1="other"')
  if (kept.has(unsent) || kept.size < 2 * max) return unsent
  return unsent.replaceAll(OWN_LABELS, '$1="other"')
}

function addSums(to: Families, from: Families, keptAs: typeof endedSeries = (series) => series): void {
  for (const [name, { comments, isSum, samples }] of from) {
    if (!isSum) continue
    const family = to.get(name) ?? { comments, isSum, samples: new Map<string, number>() }
    to.set(name, family)
    for (const [series, value] of samples) {
      const kept = keptAs(series, family.samples, samples.size)
      family.samples.set(kept, (family.samples.get(kept) ?? 0) + value)
    }
  }
}

function addOwn(to: Families, from: Families, number: number): void {
  for (const [name, { comments, isSum, samples }] of from) {
    if (isSum) continue
    const family = to.get(name) ?? { comments, isSum, samples: new Map<string, number>() }
    to.set(name, family)
    for (const [series, value] of samples) family.samples.set(withWorkerLabel(series, number), value)
  }
}

/** Adds the label of a worker to a series. The name of a metric has no brace. */
function withWorkerLabel(series: string, worker: number): string {
  const at = series.indexOf('{')
  const label = `worker="${worker}"`
  if (at === -1) return `${series}{${label}}`
  const rest = series.slice(at + 1)
  return `${series.slice(0, at)}{${label}${rest === '}' ? '' : ','}${rest}`
}

function textOf(families: Families): string {
  const lines: string[] = []
  for (const { comments, samples } of families.values()) {
    lines.push(...comments)
    for (const [series, value] of samples) lines.push(`${series} ${value}`)
  }
  return `${lines.join('\n')}\n`
}
