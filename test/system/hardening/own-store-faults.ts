import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { after, before } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'

export const LATE_MS = 400

/** The faults that an operation of a store of the app may have in place of its work. */
export const FAULTS: Record<string, () => unknown> = {
  throws: () => {
    throw new Error('the store is down')
  },
  'throws no error': () => {
    throw undefined
  },
  'throws that it is away': () => {
    throw new StoreAway('away')
  },
  rejects: () => Promise.reject(new Error('the store is down')),
  'rejects late': () => sleep(LATE_MS).then(() => Promise.reject(new Error('the store was down'))),
  'never settles': () => new Promise(() => {}),
  'answers null': () => null,
  'answers a text': () => 'yes',
  'answers a number': () => Number.NaN,
  'answers an empty object': async () => ({}),
  'answers a list': async () => ['x'],
  'answers true late': () => sleep(LATE_MS, true),
}

/** The same of a function of the app. */
export const FUNCTION_FAULTS: Record<string, () => unknown> = {
  ...FAULTS,
  'throws a word of Express': () => {
    throw 'router'
  },
  'rejects with a word of Express': () => Promise.reject('route'),
}

/** Whether a fault keeps an operation from answering anything. */
export const isFailure = (what: string): boolean => !what.startsWith('answers')

/** A fault of one operation, for the calls of one user. */
export interface FaultState {
  fault: (() => unknown) | undefined
}

const users = new AsyncLocalStorage<string>()

/** Notes whose call it is, by the header `x-user`. Mount it first. */
export const noteUser: RequestHandler = (req, _res, next) => users.run(`${req.headers['x-user']}`, next)

/** The same, one of whose operations goes wrong while `fault` is set, in the calls of the user "mine". */
export function faultyForMine<T extends object>(it: T, operation: string, state: FaultState): T {
  return new Proxy(it, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) =>
        name === operation && state.fault && users.getStore() === 'mine'
          ? state.fault()
          : value.apply(target, given)
    },
  })
}

/** The same functions, one of which goes wrong while `fault` is set, in the calls of the user "mine". */
export function withFault<T extends object>(functions: T, name: keyof T & string, state: FaultState): T {
  const work = functions[name] as (...given: unknown[]) => unknown
  const faulty = (...given: unknown[]) =>
    state.fault && users.getStore() === 'mine' ? state.fault() : work(...given)
  return { ...functions, [name]: faulty }
}

/** Fails a suite in which a rejection goes unhandled. */
export function nothingUnhandled(): void {
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  before(() => void process.on('unhandledRejection', note))
  after(() => {
    process.off('unhandledRejection', note)
    assert.deepEqual(unhandled, [])
  })
}
