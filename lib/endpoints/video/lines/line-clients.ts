import type { AttemptNote, LineSender, Logger } from '../../../core/call/index.ts'
import { hasEndpoint, type Line } from '../../../core/catalog/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import type { VideoTask } from '../../../ledger/tasks/task.ts'
import type { LineAccess } from '../../../routing/line-access.ts'
import type { ContentSource, CreateOutcome, LineClient } from '../tasks/line-client.ts'
import { arkAnswers, arkCreateRequest } from './ark-tasks.ts'
import { openAiAnswers, openAiCreateRequest } from './openai-videos.ts'
import { type AnswerParser, cancelOutcome, createOutcome, readOutcome } from './upstream-answer.ts'
import type { VideoCreate } from './video-create.ts'

export interface LineCreate {
  readonly create: VideoCreate
  readonly upstreamModel: string
}

/** How a protocol of lines that make videos differs from the others. */
interface LineKind {
  readonly tasksPath: string
  requestFor: typeof arkCreateRequest
  parserFor: typeof arkAnswers
}

const KINDS: Readonly<Record<'openai' | 'ark', LineKind>> = {
  openai: { tasksPath: '/videos', requestFor: openAiCreateRequest, parserFor: openAiAnswers },
  ark: { tasksPath: '/contents/generations/tasks', requestFor: arkCreateRequest, parserFor: arkAnswers },
}

/**
 * Whether a line can be asked for new videos. Videos that it generated earlier stay on it, even if its endpoints change.
 */
export function makesVideos(line: Line): boolean {
  const { protocol } = line
  return protocol !== 'anthropic' && hasEndpoint(line, protocol, KINDS[protocol].tasksPath.slice(1))
}

/** Returns the `unsupported_feature` of a create that the protocol of a line cannot express. */
export function unfitFor(create: VideoCreate, { protocol }: Line): GatewayError | undefined {
  if (protocol === 'anthropic') return new GatewayError('no_candidate')
  try {
    KINDS[protocol].requestFor(create, '')
    return undefined
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

/** Makes the clients of lines, to create tasks and to ask about them. */
export class VideoLineClients {
  readonly #lines: LineAccess
  readonly #logger: Logger
  readonly #logged = new Set<string>()

  constructor(lines: LineAccess, logger: Logger) {
    this.#lines = lines
    this.#logger = logger
  }

  /** Returns the client of a line; undefined if the config no longer has the line, or it makes no videos. */
  readonly of = (id: string, note?: AttemptNote): LineClient<LineCreate> | undefined => {
    const line = this.#lines.line(id)
    return line && this.with(line, this.#lines.senderTo(line, note))
  }

  with(line: Line, send: LineSender): LineClient<LineCreate> | undefined {
    if (line.protocol === 'anthropic') return undefined
    const kind = KINDS[line.protocol]
    const parser = kind.parserFor((status) => this.#logUnknownStatus(line, status.slice(0, 100)))
    return new VideoLineClient(line, { kind, parser, send, lines: this.#lines })
  }

  /** Logs an unknown status once per line: otherwise each poll of each task would log it. */
  #logUnknownStatus({ id: line }: Line, status: string): void {
    const key = `${line} ${status}`
    if (this.#logged.has(key) || this.#logged.size >= 1000) return
    this.#logged.add(key)
    this.#logger.warn({ line, status }, 'video: unknown status of a task; it counts as running')
  }
}

interface ClientDeps {
  readonly kind: LineKind
  readonly parser: AnswerParser
  readonly send: LineSender
  readonly lines: LineAccess
}

class VideoLineClient implements LineClient<LineCreate> {
  readonly #line: Line
  readonly #deps: ClientDeps

  constructor(line: Line, deps: ClientDeps) {
    this.#line = line
    this.#deps = deps
  }

  async create({ create, upstreamModel }: LineCreate, signal: AbortSignal): Promise<CreateOutcome> {
    const { kind, parser, send } = this.#deps
    return createOutcome(await send(kind.requestFor(create, upstreamModel), signal), parser)
  }

  async read(task: VideoTask, signal: AbortSignal) {
    const { parser, send } = this.#deps
    return readOutcome(await send({ method: 'GET', path: this.#pathOf(task) }, signal), parser)
  }

  async cancel(task: VideoTask, signal: AbortSignal) {
    return cancelOutcome(await this.#delete(task, signal), 'cancelled')
  }

  async remove(task: VideoTask, signal: AbortSignal) {
    const result = await this.#delete(task, signal)
    const cannot = result.kind === 'refused' && result.status === 405
    if (cannot) return { kind: 'deleted', upstreamStatus: result.status, detail: null } as const
    return cancelOutcome(result, 'deleted')
  }

  async content(
    task: VideoTask,
    part: 'video' | 'thumbnail' | 'spritesheet',
    signal: AbortSignal,
  ): Promise<ContentSource> {
    if (this.#line.protocol === 'openai') {
      const query = part === 'video' ? '' : `?variant=${part}`
      const { url, headers } = this.#deps.lines.address(this.#line, `${this.#pathOf(task)}/content${query}`)
      return { kind: 'at', url, headers: pairsOf(headers) }
    }
    if (part !== 'video') return { kind: 'missing' }
    // The address is read again, because it expires after a day and the task may be older.
    const outcome = await this.read(task, signal)
    const url = outcome.kind === 'answered' ? (outcome.observation.contentUrl ?? null) : task.contentUrl
    if (url !== null) return { kind: 'at', url, headers: {} }
    return outcome.kind === 'away' ? { kind: 'away', code: outcome.code } : { kind: 'missing' }
  }

  #delete(task: VideoTask, signal: AbortSignal) {
    return this.#deps.send({ method: 'DELETE', path: this.#pathOf(task) }, signal)
  }

  #pathOf({ upstreamId }: VideoTask): string {
    return `${this.#deps.kind.tasksPath}/${encodeURIComponent(upstreamId ?? '')}`
  }
}

function pairsOf(headers: readonly string[]): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (let i = 0; i + 1 < headers.length; i += 2) pairs[headers[i] as string] = headers[i + 1] as string
  return pairs
}
