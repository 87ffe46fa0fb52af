import type { RequestHandler } from 'express'
import type { Peers } from './peers.ts'
import { sharedAnswer } from './shared-answer.ts'
import type { Report } from './worker-messages.ts'

/** Answers a scrape, of this process or of all workers. No key is asked for it, so that no number of them may cost much. */
export function metricsPage(ownText: () => Promise<string>, peers: Peers | undefined): RequestHandler {
  const scrape = sharedAnswer(async () => (peers ? ofAllWorkers(await peers.ask('metrics')) : ownText()))
  return async function metricsPage(_req, res) {
    res.type('text/plain; version=0.0.4; charset=utf-8').send(await scrape())
  }
}

interface Family {
  /** What is said of the metric. */
  readonly comments: string[]
  readonly samples: string[]
}

/**
 * The scrapes of all workers as one, each series with the number of its worker. Summed up, a counter would fall when a
 * worker ends or does not answer, and whoever takes its rate would see a reset, and a burst that never was.
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
      family.samples.push(labelled(line, worker))
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

/** A series with a label more. The name of a metric has neither space nor brace. */
function labelled(sample: string, worker: number): string {
  const at = sample.search(/[{ ]/)
  const name = sample.slice(0, at)
  const rest = sample.slice(at)
  const label = `worker="${worker}"`
  if (rest.startsWith(' ')) return `${name}{${label}}${rest}`
  return rest.startsWith('{}') ? `${name}{${label}${rest.slice(1)}` : `${name}{${label},${rest.slice(1)}`
}
