import type { RequestHandler } from 'express'
import type { Peers } from './peers.ts'
import { singleFlight } from './single-flight.ts'
import type { Report } from './worker-messages.ts'

/** Making an answer takes long only while a worker does not tell its figures. */
const MAX_AGE_MS = 1000

/**
 * Answers scrapes of this process or of all workers. They need no key, so they take at most a tenth of the time: scrapes
 * share an answer while it is made and for nine times as long, a second at most.
 */
export function metricsPage(ownText: () => Promise<string>, peers: Peers | undefined): RequestHandler {
  const scrape = singleFlight(
    async () => (peers ? ofAllWorkers(await peers.ask('metrics')) : ownText()),
    (tookMs) => Math.min(MAX_AGE_MS, 9 * tookMs),
  )
  return async function metricsPage(_req, res) {
    res.type('text/plain; version=0.0.4; charset=utf-8').send(await scrape())
  }
}

interface Family {
  /** The `# HELP` and `# TYPE` lines. */
  readonly comments: string[]
  readonly samples: string[]
}

/**
 * Joins the scrapes of all workers; each series gets a label with the number of its worker. A sum over workers would drop
 * when a worker ends or does not answer, which a rate would read as a counter reset.
 */
function ofAllWorkers(reports: readonly Report<'metrics'>[]): string {
  const families = new Map<string, Family>()
  for (const { worker, figures } of reports) {
    if (figures !== null) addTo(families, figures, worker)
  }
  families.set(ANSWERED, {
    comments: [
      `# HELP ${ANSWERED} 1 for a worker that has answered this scrape, 0 for one that did not in time`,
      `# TYPE ${ANSWERED} gauge`,
    ],
    samples: reports.map(
      ({ worker, figures }) => `${ANSWERED}{worker="${worker}"} ${figures === null ? 0 : 1}`,
    ),
  })
  const lines = [...families.values()].flatMap(({ comments, samples }) => [...comments, ...samples])
  return `${lines.join('\n')}\n`
}

const ANSWERED = 'model_gateway_worker_answered'
const COMMENT = /^# (?:HELP|TYPE|UNIT) (\S+)/

function addTo(families: Map<string, Family>, scrape: string, worker: number): void {
  let family: Family = { comments: [], samples: [] }
  let name = ''
  let known = false
  for (const line of scrape.split('\n')) {
    if (line === '') continue
    if (!line.startsWith('#')) {
      family.samples.push(withWorkerLabel(line, worker))
      continue
    }
    const named = COMMENT.exec(line)?.[1]
    if (named === undefined) continue
    if (named !== name) {
      name = named
      known = families.has(name)
      family = families.get(name) ?? { comments: [], samples: [] }
      families.set(name, family)
    }
    if (!known) family.comments.push(line)
  }
}

/** Adds the label of a worker to a series. The name of a metric has neither space nor brace. */
function withWorkerLabel(sample: string, worker: number): string {
  const at = sample.search(/[{ ]/)
  const name = sample.slice(0, at)
  const rest = sample.slice(at)
  const label = `worker="${worker}"`
  if (rest.startsWith(' ')) return `${name}{${label}}${rest}`
  return rest.startsWith('{}') ? `${name}{${label}${rest.slice(1)}` : `${name}{${label},${rest.slice(1)}`
}
