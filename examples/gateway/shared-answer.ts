/** While something is being found out, whoever asks waits for that one answer: many who ask cost no more than one. */
export function sharedAnswer<T>(find: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined
  return function sharedAnswer() {
    underWay ??= find().finally(() => {
      underWay = undefined
    })
    return underWay
  }
}
