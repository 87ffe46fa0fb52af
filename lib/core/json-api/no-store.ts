import type { NextFunction, Request, Response } from 'express'

/** Forbids all caches to store an answer: what a key or an operator may see is for its holder alone. */
export function setNoStore(res: Response): void {
  res.setHeader('cache-control', 'private, no-store')
}

/** A middleware that calls {@link setNoStore}. A refusal holds nothing of anybody, and is sent without it. */
export function noStore(_req: Request, res: Response, next: NextFunction): void {
  setNoStore(res)
  next()
}
