import { type IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import { type CallEnding, type CallRequest, openCall } from '../../../../lib/core/call/index.ts'
import { FREE, type Line } from '../../../../lib/core/catalog/index.ts'
import { chatCompletions, type Operation } from '../../../../lib/core/operations/index.ts'
import type { Translation } from '../../../../lib/core/translate/index.ts'
import { Untranslatable } from '../../../../lib/core/translate/index.ts'
import { type AnswerEnd, attemptOn } from '../../../../lib/middleware/route/attempt/attempt.ts'
import { finishCall } from '../../../../lib/middleware/route/attempt/finish-call.ts'
import { RequestAdapter } from '../../../../lib/routing/attempt/adapted-request.ts'
import type { DisconnectPolicy } from '../../../../lib/routing/attempt/caller-disconnect.ts'
import type { Candidate } from '../../../../lib/routing/candidates/candidate.ts'
import type { AttemptResult } from '../../../../lib/routing/try-candidates.ts'
import { configWith, LINE } from '../../../core/config/config.ts'
import { loadConfig } from '../../../support/any-config.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { eventsOf, OPENAI_STREAM } from '../../../support/exchange.ts'

export const PRICE = { ...FREE, inputPerMillion: 1_000_000n, outputPerMillion: 1_000_000n }

export const JSON_TYPE = 'application/json'
export const STREAM = 'text/event-stream'
export const EVENTS = eventsOf(OPENAI_STREAM, ['Hi', ' there'])
/** Up to its first word. */
export const BEGUN = EVENTS.slice(0, 2).join('')
export const REST = EVENTS.slice(2).join('')

/** The trace of a call with a key, which keeps what is not sent. */
export const idempotency = (kept: string[]) =>
  ({ keep: (bytes: unknown) => void kept.push(String(bytes)) }) as never

interface Given {
  operation?: Operation
  members?: object
  line?: object
  policy?: DisconnectPolicy
  /** The translation of the answer, for a request that is sent as it is. */
  translation?: Translation | undefined
  /** Whether the line has the endpoint of the operation. Defaults to whether they have a protocol in common. */
  isNative?: boolean
  /** How settling goes; at once else. */
  settles?: (ending: CallEnding) => Promise<void> | undefined
  /** Whether the caller takes a piece at once; all of them else. */
  takes?: (text: string) => boolean
}

/** A call on one line, without connections: a test supplies the line's answer, and `log` notes what the caller gets. */
export function routedCall({
  operation = chatCompletions,
  members = {},
  line: own = {},
  policy = { onDisconnect: 'abort', drainMs: 1000 },
  translation: given,
  isNative,
  settles = () => undefined,
  takes = () => true,
}: Given = {}) {
  const { catalog } = loadConfig(configWith({ lines: [{ ...LINE, ...own }] }))
  const line = catalog.lines[0] as Line
  const log: string[] = []
  const note =
    (what: string) =>
    (...given: unknown[]) =>
      void log.push([what, ...given.map(String)].join(' '))
  const req = new IncomingMessage(new Socket())
  const res = new ServerResponse(req)
  const { writeHead } = res
  Object.assign(res, {
    writeHead(status: number, headers: object) {
      log.push(`head ${status}`)
      return writeHead.call(res, status, headers as never)
    },
    write(bytes: unknown) {
      log.push(`write ${bytes}`)
      return takes(String(bytes))
    },
    end: note('end'),
  })
  const logger = recordingLogger()
  const call = openCall(req, res, { logger })
  const endings: CallEnding[] = []
  call.onSettle((ending) => {
    endings.push(ending)
    return settles(ending)
  })
  const json = { model: 'chat', messages: [{ role: 'user', content: 'hi' }], ...members }
  const request = {
    operation,
    body: { json, raw: Buffer.from(JSON.stringify(json)) },
    model: catalog.models.get('chat'),
    fallbacks: [],
    stream: false,
    answers: 1,
    units: 0,
    tools: 0,
    webSearches: 0,
    estimatedInputTokens: 5,
    maxOutputTokens: undefined,
    features: new Set(),
    references: [],
    ...members,
  } as unknown as CallRequest
  call.request = request
  const speeds: number[][] = []
  let sender: Dispatcher.DispatchHandler | undefined
  const aborted: unknown[] = []
  const controller = {
    pause: note('pause'),
    resume: note('resume'),
    abort: (why: unknown) => aborted.push(why),
  }
  const state = {
    inFlight: 0,
    recent: { count: () => {} },
    transport: {
      dispatch(_: unknown, handler: Dispatcher.DispatchHandler) {
        sender = handler
        return true
      },
    },
    observeFirstByte: (ms: number) => speeds.push([ms]),
    observeThroughput: (tokens: number, ms: number) => speeds.push([tokens, ms]),
  }
  const native = isNative ?? operation.protocol === line.protocol
  const candidate = {
    ...{ line, upstreamModel: 'upstream', price: PRICE, contextWindow: undefined, state, native },
  } as unknown as Candidate
  const adapter = new RequestAdapter(request)
  const routed = { call, request, inbound: {}, res, disconnect: policy }
  let result: AttemptResult<AnswerEnd> | undefined
  let finishing: Promise<unknown> | undefined
  async function attempt(): Promise<void> {
    const context = {
      deadline: performance.now() + 60_000,
      ordered: [candidate],
      report: { success: note('success') },
    }
    const adapted = given ? { ...request, operation: given.to, translation: given } : adapter.for(candidate)
    if (adapted instanceof Untranslatable) throw adapted
    result = await attemptOn(candidate, adapted, context, routed)
    await finishCall(routed, { candidate, result })
  }
  const more = async (...pieces: string[]): Promise<void> => {
    for (const piece of pieces) {
      sender?.onResponseData?.(told, Buffer.from(piece))
      await turnOver()
    }
  }
  const told = controller as unknown as Dispatcher.DispatchController
  return {
    ...{ call, req, res, line, candidate, log, endings, speeds, aborted, logger, more },
    /** Sends the request, which reaches the line. */
    send(connects = true) {
      finishing = attempt().then(
        () => 'done',
        (error: unknown) => error,
      )
      if (connects) sender?.onRequestStart?.(told, {})
    },
    /** The line answers, each piece in a turn of its own. */
    async answer(status: number, type: string | IncomingHttpHeaders, ...pieces: string[]) {
      const headers = typeof type === 'string' ? { 'content-type': type } : { ...type }
      sender?.onResponseStart?.(told, status, headers, 'OK')
      await more(...pieces)
    },
    over: () => sender?.onResponseEnd?.(told, {}),
    breakOff: () => sender?.onResponseError?.(told, new Error('reset')),
    leave() {
      call.hold()
      res.emit('close')
    },
    /** The result of the attempt; undefined while it runs. */
    get result() {
      return result
    },
    /** Resolves with `done` or an error once the attempt and its call are over. */
    get finished() {
      return finishing
    },
  }
}

/** Resolves once what has come is read. */
export function turnOver(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
