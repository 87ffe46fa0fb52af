import type { CallLogEntry } from 'express-model-gateway/call-log'
import type { Api, Page, Query } from './api.ts'
import type { Session } from './session.ts'

export type Call = CallLogEntry

/** Returns the path of calls: holders of keys see those of their account, operators see all. */
export function callsPath({ kind }: Session): string {
  return kind === 'admin' ? 'admin/calls' : 'v1/calls'
}

export interface CallsSource {
  readonly session: Session
  readonly api: Api
  readonly signal: AbortSignal
}

/** Reads one page of calls, newest first. */
export function listCalls({ session, api, signal }: CallsSource, query: Query): Promise<Page<Call>> {
  return api.get<Page<Call>>(callsPath(session), query, signal)
}

/** Reads one call, with its stored answer. */
export function findCall({ session, api, signal }: CallsSource, id: string): Promise<Call> {
  return api.get<Call>(`${callsPath(session)}/${encodeURIComponent(id)}`, {}, signal)
}

/** Returns the lines that a call tried, in their order. */
export function linesOf({ routing }: Call): string {
  return (routing?.attempts ?? []).map(({ line }) => line).join(' → ')
}
