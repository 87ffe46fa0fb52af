/** Whether requests with a method only read. */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}
