import { Worker } from 'node:worker_threads'
import { FairQueue } from '../../core/fair-queue/index.ts'
import {
  anArray,
  aString,
  checkOptions,
  type OptionRules,
  someMilliseconds,
} from '../../core/options/index.ts'
import { timeLimit } from '../../core/timing/index.ts'
import type { Decision, GuardFunction } from './checker.ts'

/** Options of {@link patterns}. */
export interface PatternsOptions {
  /** A text with a match is refused. Defaults to none. */
  refuse?: readonly (RegExp | string)[]
  /** Matches are replaced. Defaults to none. */
  mask?: readonly (RegExp | string)[]
  /** The text in place of a match of `mask`. Defaults to `[removed]`. */
  replacement?: string
  /** The reason in the message of a refusal. Defaults to `it matches a pattern`. */
  reason?: string
  /** How long the patterns may take with one text, in milliseconds. Defaults to 1000. */
  timeoutMs?: number
}

const RULES: OptionRules<PatternsOptions> = {
  refuse: anArray('a list of regular expressions'),
  mask: anArray('a list of regular expressions'),
  replacement: { be: 'a string', accepts: (value) => typeof value === 'string' },
  reason: aString(),
  timeoutMs: someMilliseconds,
}

/** A regular expression as another thread can have it. */
interface Pattern {
  readonly source: string
  readonly flags: string
}

interface Job {
  readonly text: string
  readonly refuse: readonly Pattern[]
  readonly mask: readonly Pattern[]
  readonly replacement: string
}

/** The result of the thread: a match that is refused, or the masked text. */
type Found = { readonly refused: true } | { readonly text: string }

/**
 * Returns a function for `guard` that refuses or masks what matches regular expressions. They run in a thread of their own: one
 * that takes too long with a text is stopped there, and delays other calls no longer.
 *
 * @throws TypeError at construction when an option is unusable or an expression is not valid.
 * @example
 * guard({ input: patterns({ mask: [/\b\d{4}([ -]?\d{4}){3}\b/] }) })
 */
export function patterns(options: PatternsOptions = {}): GuardFunction {
  checkOptions('patterns', options, RULES)
  const { replacement = '[removed]', reason = 'it matches a pattern', timeoutMs = 1000 } = options
  const refuse = patternsOf('refuse', options.refuse)
  const mask = patternsOf('mask', options.mask)
  if (refuse.length + mask.length === 0) throw new TypeError('patterns: give "refuse" or "mask"')

  return async function patterns(text, call): Promise<Decision> {
    const sharer = call.principal?.accountId ?? call.clientIp ?? ''
    const found = await thread.run(sharer, { text, refuse, mask, replacement }, timeoutMs)
    if ('refused' in found) return { refuse: reason }
    return found.text === text ? 'allow' : { replace: found.text }
  }
}

function patternsOf(name: string, given: readonly (RegExp | string)[] = []): readonly Pattern[] {
  return given.map((each) => {
    try {
      const { source, flags } = typeof each === 'string' ? new RegExp(each, 'u') : new RegExp(each)
      return { source, flags: flags.replace(/[gy]/g, '') }
    } catch (error) {
      throw new TypeError(
        `patterns: "${name}" has an expression that is not valid: ${(error as Error).message}`,
      )
    }
  })
}

/** The program of the thread. It is a text, so that it runs from the sources and from a build alike. */
const PROGRAM = `
const { parentPort } = require('node:worker_threads')
parentPort.on('message', ({ text, refuse, mask, replacement }) => {
  parentPort.postMessage('begun')
  if (refuse.some(({ source, flags }) => new RegExp(source, flags).test(text))) {
    parentPort.postMessage({ refused: true })
    return
  }
  for (const { source, flags } of mask) text = text.replace(new RegExp(source, flags + 'g'), () => replacement)
  parentPort.postMessage({ text })
})
`

interface Waiting {
  readonly job: Job
  readonly timeoutMs: number
  readonly resolve: (found: Found) => void
  readonly reject: (error: Error) => void
}

/** Runs expressions in a thread, one text after the other, of one account after the other. */
class PatternThread {
  #worker: Worker | undefined
  readonly #waiting = new FairQueue<Waiting>({})
  #current: Waiting | undefined
  #cancel: (() => void) | undefined

  run(account: string, job: Job, timeoutMs: number): Promise<Found> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(account, { job, timeoutMs, resolve, reject })
      this.#next()
    })
  }

  #next(): void {
    if (this.#current) return
    this.#current = this.#waiting.take(1)[0]
    const worker = this.#worker
    if (!this.#current) {
      // An idle thread keeps no process alive.
      worker?.unref()
      return
    }
    const { job } = this.#current
    const running = worker ?? this.#start()
    running.ref()
    running.postMessage(job)
  }

  #start(): Worker {
    const worker = new Worker(PROGRAM, { eval: true })
    worker.on('message', (message: Found | 'begun') => {
      if (message === 'begun') this.#limit()
      else this.#settle(({ resolve }) => resolve(message))
    })
    worker.on('error', (error) => {
      if (this.#worker === worker) this.#giveUp(error as Error)
    })
    this.#worker = worker
    return worker
  }

  /** The time of a text begins with its first pattern: a thread takes long to start. */
  #limit(): void {
    const { timeoutMs } = this.#current as Waiting
    const giveUp = (): void => this.#giveUp(new Error(`the patterns took longer than ${timeoutMs} ms`))
    this.#cancel = timeLimit(timeoutMs, giveUp, true)
  }

  /** Ends the thread with what it runs; the next text gets a new one. */
  #giveUp(error: Error): void {
    void this.#worker?.terminate()
    this.#worker?.removeAllListeners('message')
    this.#worker = undefined
    this.#settle(({ reject }) => reject(error))
  }

  #settle(end: (waiting: Waiting) => void): void {
    const current = this.#current
    this.#cancel?.()
    this.#current = undefined
    if (current) {
      this.#waiting.done([current])
      end(current)
    }
    this.#next()
  }
}

/** One for the process: a thread takes some MiB. */
const thread = new PatternThread()
