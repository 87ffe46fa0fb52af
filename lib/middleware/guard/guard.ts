import { isUtf8 } from 'node:buffer'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import {
  type AnswerFilter,
  type Call,
  callOf,
  filterAnswer,
  joinedFilter,
  type OpenCall,
} from '../../core/call/index.ts'
import { isJsonObject, parseKeepingIntegers } from '../../core/json/index.ts'
import {
  aFunction,
  aString,
  aWholeNumber,
  checkedFunction,
  checkOptions,
  type OptionRules,
  oneOf,
  someMilliseconds,
} from '../../core/options/index.ts'
import { contentOf } from '../../core/repetition/index.ts'
import { Checker, type CheckerOptions, type GuardFunction } from './checker.ts'
import { dropLogprobs, textsOf } from './texts.ts'
import { WindowStream } from './window-stream.ts'

/** Options of {@link guard}. */
export interface GuardOptions {
  /** Checks what callers send, before anything is counted or held. Defaults to no check. */
  input?: GuardFunction
  /** Checks what they are answered, before they get it. Defaults to no check. */
  output?: GuardFunction
  /** The name of the guard in the call log, metrics and logs. Defaults to `guard`. */
  name?: string
  /**
   * After how many characters of a stream `output` is asked. It gets them with the half window before them, so that a match of up
   * to half a window is found wherever it lies. Defaults to 500.
   */
  windowChars?: number
  /** How long a check may take, in milliseconds. Defaults to 5000. */
  timeoutMs?: number
  /** Whether a text is refused or passes if its check failed or took too long. Defaults to `refuse`. */
  onError?: 'refuse' | 'allow'
  /** Whether a request is not checked. Defaults to none. */
  skip?: (req: Request, call: Call) => boolean
}

const RULES: OptionRules<GuardOptions> = {
  input: aFunction("a function of a text that returns 'allow', { refuse } or { replace }"),
  output: aFunction("a function of a text that returns 'allow', { refuse } or { replace }"),
  name: aString(),
  windowChars: aWholeNumber('a whole number of characters, at least 1', 1),
  timeoutMs: someMilliseconds,
  onError: oneOf('refuse', 'allow'),
  skip: aFunction('a function of the request that returns whether it is not checked'),
}

const A_BOOLEAN = { be: 'true or false', accepts: (value: unknown) => typeof value === 'boolean' }

/**
 * Checks what goes in and out, and refuses it with `content_filtered` or replaces parts of it. Requires `readRequest` or a parser
 * such as `express.json()` before it. Writes `call.guards`.
 *
 * A refused request is counted and charged nowhere behind the guard. A refused answer is charged for what was produced. After the
 * first bytes of a stream were sent, a refusal ends it with the error event of the protocol.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.use(express.json(), guard({ input: (text) => (text.includes('secret') ? { refuse: 'a secret' } : 'allow') }))
 * @example
 * app.post('/v1/chat/completions', readRequest({ catalog }), guard({ output: patterns({ mask: [/\d{16}/] }) }), route({ catalog }))
 */
export function guard(options: GuardOptions = {}): RequestHandler {
  checkOptions('guard', options, RULES)
  const { input, output, name = 'guard', windowChars = 500, timeoutMs = 5000, onError = 'refuse' } = options
  if (!input && !output)
    throw new TypeError(
      'guard: give "input" or "output", such as guard({ input: patterns({ refuse: [/…/] }) })',
    )
  const skip = options.skip && checkedFunction('guard: "skip"', A_BOOLEAN, options.skip)
  const settings: CheckerOptions = { name, timeoutMs, onError }

  return function guard(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    try {
      if (skip?.(req, call)) {
        next()
        return
      }
    } catch (error) {
      next(error)
      return
    }
    if (output) {
      call.answerFilters.push(filterBy(output, call))
      filterAnswer(res, () => (call.filtersAnswer ? undefined : joinedFilter(call.answerFilters)), next)
    }
    if (!input) {
      next()
      return
    }
    checkInput(req, new Checker(input, call, 'input', settings), call).then(() => next(), next)
  }

  function filterBy(check: GuardFunction, call: OpenCall): AnswerFilter {
    const checker = new Checker(check, call, 'output', settings)
    return {
      name,
      whole: (answer, type) => checkWhole(answer, type, checker, call.request !== null),
      stream: () => new WindowStream(checker, windowChars),
    }
  }
}

async function checkInput(req: Request, checker: Checker, call: OpenCall): Promise<void> {
  const { request } = call
  const body: unknown = request ? request.body.json : req.body
  if (body === undefined) {
    const content = contentOf(req, call)
    if (content === 'no parser')
      throw new TypeError('guard: the body was not read; mount readRequest or express.json() before guard')
    if (content === 'not parsed')
      throw call.refuse('invalid_request', {
        message:
          'The body was not read, so it cannot be checked. Send it as JSON, with "Content-Type: application/json".',
      })
    return
  }
  if (typeof body === 'string' || Buffer.isBuffer(body)) {
    // Bytes that are no text are an image or another file.
    if (Buffer.isBuffer(body) && !isUtf8(body)) return
    const replaced = await checker.check(body.toString())
    if (replaced !== undefined) req.body = typeof body === 'string' ? replaced : Buffer.from(replaced)
    return
  }
  const raw = request?.body.raw
  // A copy, which may be changed. Integers beyond 2^53 keep their digits.
  const json = raw && raw.length > 0 ? parseKeepingIntegers(raw.toString()) : structuredClone(body)
  const model = isJsonObject(json) ? json.model : undefined
  if (!(await checker.checkAll(textsOf(json, request !== null)))) return
  if (request && isJsonObject(json)) {
    const isForm = request.body.raw.length === 0
    const text = JSON.stringify({ ...json, ...(model !== undefined && { model: request.body.json.model }) })
    call.request = {
      ...request,
      body: { raw: isForm ? request.body.raw : Buffer.from(text), json: JSON.parse(text) },
    }
  }
  if (req.body !== undefined) req.body = request ? call.request?.body.json : json
}

async function checkWhole(
  answer: string,
  type: string,
  checker: Checker,
  isOfProtocol: boolean,
): Promise<string> {
  if (answer === '') return answer
  const json = type.includes('json') || type === '' ? parsed(answer) : undefined
  if (typeof json !== 'object' || json === null) return (await checker.check(answer)) ?? answer
  if (!(await checker.checkAll(textsOf(json, isOfProtocol)))) return answer
  dropLogprobs(json)
  return JSON.stringify(json)
}

function parsed(text: string): unknown {
  try {
    return parseKeepingIntegers(text)
  } catch {
    return undefined
  }
}
