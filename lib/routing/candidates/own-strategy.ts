import { checkedFunction } from '../../core/own-functions/index.ts'
import type { Strategy } from './strategies.ts'

const CANDIDATES = { be: 'an array of the candidates that it was given', accepts: Array.isArray }

/** Returns a strategy of the app that orders a list of its own, and returns nothing but what was in it. */
export function ownStrategy(own: Strategy): Strategy {
  const order = checkedFunction('the strategy', CANDIDATES, own)
  return (candidates, call) => {
    const ordered = [...order([...candidates], call)]
    const given = new Set(candidates)
    if (ordered.every((each) => given.has(each))) return ordered
    throw new TypeError(`the strategy must return ${CANDIDATES.be}, and returned something else in it`)
  }
}
