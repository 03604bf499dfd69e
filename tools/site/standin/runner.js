// Stands in for the runner of the playground in the tests of the site: the server of the test runs `ein` itself.
export function createRunner() {
  return {
    async request(request) {
      const answer = await fetch("/run", { method: "POST", body: JSON.stringify(request) });
      return answer.json();
    },
  };
}
