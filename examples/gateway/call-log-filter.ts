import type { CallLogEntry, CallLogWriter } from 'express-model-gateway/call-log'

/**
 * Returns a writer that ignores successful reads of the call log, so that the live view of the console does not fill with
 * its own requests. Refused reads are logged, so that you can search for their request ids.
 */
export function withoutCallLogReads(writer: CallLogWriter): Pick<CallLogWriter, 'add'> {
  return {
    add(entry: CallLogEntry): void {
      if (!isCallLogRead(entry)) writer.add(entry)
    },
  }
}

const CALL_LOG_PATH = /^\/v1\/calls(?:\/|$)/

function isCallLogRead({ method, path, status }: CallLogEntry): boolean {
  return method === 'GET' && status === 200 && CALL_LOG_PATH.test(path)
}
